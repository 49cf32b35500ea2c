#pragma once

// While it lives, this thread receives no signals, and threads that it starts never do: signals
// belong to the threads of the program that we are a guest in. One thread.

#include <pthread.h>
#include <signal.h>

namespace smd {

class SignalsBlocked final {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace smd
