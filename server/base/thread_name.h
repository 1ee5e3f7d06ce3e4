// Names that debuggers and `top -H` show for our threads.
#pragma once

#include <pthread.h>

#include <string>

namespace gemmd {

// Names the calling thread; the kernel keeps the first 15 characters.
inline void SetThreadName(const std::string& name) {
  pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
}

}  // namespace gemmd
