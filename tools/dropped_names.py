"""Why names of the original are missing or differ: patterns of `module:name`, the first one counts.

A name that differs and is in neither table fails tools/original_names.py: add it, or say why not.
"""

from __future__ import annotations

PROFILER = "there is no profiler: smdebug looks at tensors, not at CPUs, GPUs and operators"
FILES = "the core reads and writes the files; `FileReader` and `FileWriter` stand for it"
INTERNAL = "an inner part of the original"
VERSIONS = "a test for versions of the framework that the original knew"
GRAPHS = "collections hold names; what a graph has for them is found when a step saves"
CALLBACKS = "a callback of the original's own; callbacks exist at saved steps only"
TABLES = "a table of the original's own; `hook.get_collections()` has what a hook uses"

DROPPED = {
    "smdebug.profiler*": PROFILER,
    "smdebug.trials.profiler_trial:*": PROFILER,
    "*:profiler_config_parser": PROFILER,
    "*:*.log_outstanding_*": PROFILER,
    "*:*.reset_*_module_profile_stats": PROFILER,
    "*:*.log_trace_event": PROFILER,
    "*:*.should_save_dataloader_metrics": PROFILER,
    "*:KerasHook.profil*": PROFILER,
    "*:is_profiler_supported_for_tf_version": PROFILER,
    "smdebug.core.config_constants:PROFILER_*": PROFILER,
    "*:*validate_profiler_config": PROFILER,
    "smdebug.core.locations:TraceFileLocation": PROFILER,
    "smdebug.core.utils:setup_profiler_report": PROFILER,
    "smdebug.core.utils:get_aws_region_from_processing_job_arn": PROFILER,
    "smdebug.core.tfevent.timeline_file_writer:*": PROFILER,
    "*:logger": "`smdebug.core.logger.get_logger()` gives the one logger of the package",
    "smdebug.core.tfevent*": FILES,
    "smdebug.core.tfrecord*": FILES,
    "smdebug.core.writer:FileWriter.*": FILES,
    "smdebug.core.index_reader:*": "the core reads index files; use a trial",
    "smdebug.core.access_layer.base:*": "`TSAccessFile` and `TSAccessS3` need no common base",
    "smdebug.core.access_layer.file:WRITE_MODES": INTERNAL,
    "smdebug.core.access_layer.s3handler:*": "requests are made by the core, one after the other",
    "smdebug.core.access_layer.utils:RULE*": "the environment is read when it is needed, not once",
    "*:ALLOWED_PARAMS": "the core knows the keys, and warns of others with the nearest one",
    "smdebug.core.reduction_config:REDUCTION_CONFIG_VERSION_NUM": INTERNAL,
    "smdebug.core.collection:DEFAULT_*": TABLES,
    "*:DEFAULT_INCLUDE_COLLECTIONS": "the module `constants` of the framework has it",
    "*:COLLECTIONS_NOT_REQUIRING_RECURSIVE_HOOK": TABLES,
    "smdebug.xgboost.hook:DEFAULT_SAVE_CONFIG_*": TABLES,
    "smdebug.xgboost.constants:INCREASING_METRICS_REGEX": TABLES,
    "smdebug.core.config_validator:SupportedFrameworks": INTERNAL,
    "smdebug.core.hook:?????*Hook": "`BaseHook` is the only base of hooks",
    "smdebug.core.hook:ScalarCache": INTERNAL,
    "smdebug.core.json_config:parse_save_config*": "`SaveConfig.from_dict()` does it",
    "smdebug.core.locations:EventFileLocation.get_file_location": "its two kinds have it",
    "smdebug.core.locations:*.get_step_from_idx_filename": "`parse_step_from_index_file_name()`",
    "smdebug.core.logger:MaxLevelFilter": "everything goes to stderr, or where `SMDEBUG_LOG_*` says",
    "smdebug.core.reductions:get_*": "statistics are computed by the core, for hooks and trials",
    "smdebug.core.tensor:*": "tensors of a trial are read from it, and not filled by others",
    "smdebug.core.utils:check_sm*": "these libraries of SageMaker are not supported",
    "smdebug.core.utils:get_distributed_worker": "the hook asks the framework for its rank",
    "smdebug.pytorch.hook:smdataparallel": "these libraries of SageMaker are not supported",
    "*:Hook.*_PREFIX": INTERNAL,
    "*:Hook.*_SUFFIX": INTERNAL,
    "*:Hook.INVALID_TAG_CHARACTERS": INTERNAL,
    "*:*.has_default_configuration": "`has_default_hook_configuration()` answers the question",
    "*:Hook.forward_*": CALLBACKS,
    "*:Hook.backward_hook": CALLBACKS,
    "*:Hook.?hook": CALLBACKS,
    "*:Hook.count_parameters": "`smdebug plan` counts what a run would hold",
    "smdebug.pytorch*:Collection.modules": "modules are kept as the names of their tensors",
    "smdebug.xgboost*:Hook.hook_from_config": "`Hook.create_from_json_file()`",
    "smdebug.xgboost*:Hook.write_*": "what is saved of a round is decided by its collections",
    "smdebug.xgboost.hook:XGBoostBaseHook": INTERNAL,
    "smdebug.xgboost.utils:is_xgb_*": VERSIONS,
    "smdebug.xgboost.utils:*": "give files to `Hook(train_data=…)`; they are read by XGBoost",
    "smdebug.pytorch.utils:get_reduction_of_data": "statistics are computed by the core",
    "smdebug.pytorch.utils:*": VERSIONS,
    "smdebug.mxnet.utils:get_reduction_of_data": "statistics are computed by the core",
    "*:*Hook.distribution_strategy": INTERNAL,
    "*:SessionHook.set_*": "wrapped optimizers tell their gradients and variables",
    "*:EstimatorHook.set_*": "wrapped optimizers tell their gradients and variables",
    "smdebug.tensorflow*:Collection.*": GRAPHS,
    "smdebug.tensorflow.base_hook:*": INTERNAL,
    "smdebug.tensorflow.callable_cache:*": INTERNAL,
    "smdebug.tensorflow.reductions:*": "statistics are computed by the core",
    "smdebug.tensorflow.tensor_ref:*": GRAPHS,
    "smdebug.tensorflow.utils:is_tf_version*": VERSIONS,
    "smdebug.tensorflow.utils:*TF_VERSION*": VERSIONS,
    "smdebug.tensorflow.utils:*version*": VERSIONS,
    "smdebug.tensorflow.utils:*": INTERNAL,
    "smdebug.trials*:*.maybe_refresh": "every question looks for news; see `refresh_data()`",
    "smdebug.trials*:*.refresh_tensor": "every question looks for news; see `refresh_data()`",
    "smdebug.trials*:*.mode_modestep": "`mode()` and `mode_step()`",
}

BY_PLACE = "by position it is the same; here it is called "
CHANGED = {
    "smdebug.core.hook:BaseHook": "made by the hooks of frameworks, with their arguments",
    "smdebug.core.singleton_utils:get_hook": "`get_hook()` of a framework knows its class",
    "*:*Hook.end": BY_PLACE + "`session`, as TensorFlow has it",
    "*:KerasHook.on_epoch_*": BY_PLACE + "`epoch`, as Keras has it",
    "*:KerasHook.set_gradients": "give the gradients in the order of the trainable variables",
    "*:*.has_default_hook_configuration": "a hook knows the default collections of its framework",
    "smdebug.*.collection:CollectionManager": "give `create_default` by name",
    "smdebug.*.collection:CollectionManager.load*": BY_PLACE + "`collection_class`",
    "smdebug.core.index_reader:*": BY_PLACE + "`start_after_key`",
    "smdebug.core.tensor:Tensor": "the trial decides what is kept in memory",
    "smdebug.trials*:Trial": "made by `create_trial()`; a subclass also hands over its `path`",
}
