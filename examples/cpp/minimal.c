/* Records a weight that moves towards its target, in C.
 * Usage: minimal [directory] */

#include <smd/c_api.h>
#include <stdio.h>

static const char config[] =
    "{\"HookParameters\": {\"save_interval\": 5},"
    " \"CollectionConfigurations\": [{\"CollectionName\": \"weights\"}]}";

int main(int argc, char** argv) {
  const char* directory = argc > 1 ? argv[1] : "run";
  smdebug_hook* hook = smdebug_hook_create(directory, config);
  if (hook == NULL) {
    fprintf(stderr, "%s\n", smdebug_last_error());
    return 1;
  }

  float weight[2][3] = {{1, 2, 3}, {4, 5, 6}};
  const int64_t shape[2] = {2, 3};
  for (int step = 0; step < 11; ++step) {
    double loss = 0;
    for (int i = 0; i < 6; ++i) {
      float* w = &weight[i / 3][i % 3];
      loss += *w * *w;
      *w *= 0.9f;
    }
    smdebug_begin_step(hook);
    smdebug_save(hook, "layer/weight", weight, SMDEBUG_FLOAT32, 2, shape, NULL);
    smdebug_save_scalar(hook, "loss", loss);
    smdebug_end_step(hook);
  }

  const int closed = smdebug_close(hook);
  if (closed != SMDEBUG_OK) fprintf(stderr, "%s\n", smdebug_last_error());
  smdebug_hook_free(hook);
  if (closed == SMDEBUG_OK) printf("The run is in %s\n", directory);
  return closed == SMDEBUG_OK ? 0 : 1;
}
