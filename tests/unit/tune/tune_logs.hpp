// SPDX-License-Identifier: Apache-2.0
// Logs of autotuners for tests.
#pragma once

#include <string>

namespace horo {

inline constexpr const char* kHorovodHeader =
    "hierarchical_allreduce,hierarchical_allgather,torus_allreduce,cache_enabled,cycle_time_ms,"
    "tensor_fusion_threshold,score\n";

inline constexpr const char* kHoroHeader =
    "hierarchical_allreduce,hierarchical_allgather,torus_allreduce,cache_enabled,cycle_time_ms,"
    "tensor_fusion_threshold,score,score_unit,standard_error,steps,wake_delay_us,state,"
    "gain_percent,gain_error_percent,chance_percent\n";

/// The default, two others, and turns that the third setting wins. The last line is cut off by
/// tests.
inline std::string horo_log() {
  return std::string(kHoroHeader) +
         "0,0,0,1,0,64,100,bytes/us,2,10,50,first points,,,\n"
         "0,0,0,1,1,4,120,bytes/us,2.5,12,50,first points,,,\n"
         "0,0,0,1,5,1,80,bytes/us,2,10,50,first points,,,\n"
         "0,0,0,1,0,64,102,bytes/us,2,10,50,first points,,,\n"
         "0,0,0,1,0.5,8,150,bytes/us,2,10,50,model,,,\n"
         "0,0,0,1,0,64,101,bytes/us,2,10,50,duel,,,\n"
         "0,0,0,1,0.5,8,151,bytes/us,2,10,50,duel,,,\n"
         "0,0,0,1,0.5,8,152,bytes/us,2,10,50,duel,,,\n"
         "0,0,0,1,0.5,8,151,bytes/us,2,10,50,challenger won,50,1,0.2\n";
}

/// A setting of an earlier job passes its check.
inline std::string checked_log() {
  return std::string(kHoroHeader) +
         "0,0,0,1,0,64,100,bytes/us,2,10,50,check,,,\n"
         "0,0,0,1,0.5,8,120,bytes/us,2,10,50,check,,,\n"
         "0,0,0,1,0.5,8,121,bytes/us,2,10,50,check,,,\n"
         "0,0,0,1,0.5,8,120.5,bytes/us,2,10,50,known holds,20.5,2,0.1\n";
}

/// The lines of a search that follows that of horo_log(). Its ending is to be added.
inline std::string later_search() {
  return "0,0,0,1,0.5,8,70,bytes/us,2,10,50,first points,,,\n"
         "0,0,0,1,0,64,65,bytes/us,2,10,50,first points,,,\n"
         "0,0,0,1,2,16,80,bytes/us,2,10,50,model,,,\n"
         "0,0,0,1,0.5,8,70,bytes/us,2,10,50,duel,,,\n"
         "0,0,0,1,2,16,81,bytes/us,2,10,50,duel,,,\n";
}

}  // namespace horo
