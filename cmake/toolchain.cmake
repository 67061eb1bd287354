# Compiler settings that every target shares.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

add_library(spikeloom_options INTERFACE)
add_library(spikeloom::options ALIAS spikeloom_options)
# No contraction: an FMA that one instruction set makes and another does not flips a spike (docs: determinism).
target_compile_options(spikeloom_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Werror=return-type -ffp-contract=off)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  # The base instruction set of the whole binary; kernels are dispatched above it at run time.
  target_compile_options(spikeloom_options INTERFACE -march=x86-64-v2)
endif()
if(SPIKELOOM_SANITIZE)
  target_compile_options(spikeloom_options INTERFACE -fsanitize=${SPIKELOOM_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(spikeloom_options INTERFACE -fsanitize=${SPIKELOOM_SANITIZE})
endif()

# Of Highway's instruction sets, the base (SSSE3 in its terms, for it counts AES into SSE4), AVX2 and AVX3 cover what
# differs; scalable vectors are left out.
set(SPIKELOOM_DISABLED_TARGETS
  "HWY_DISABLED_TARGETS=(HWY_SSE4|HWY_AVX3_DL|HWY_SVE|HWY_SVE2|HWY_SVE_256|HWY_SVE2_128|HWY_RVV)")

# spikeloom_module(NAME SOURCES ... [DEPENDS ...] [PRIVATE_DEPENDS ...]): one static library per folder of src/.
function(spikeloom_module name)
  cmake_parse_arguments(M "" "" "SOURCES;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  add_library(spikeloom_${name} STATIC ${M_SOURCES})
  add_library(spikeloom::${name} ALIAS spikeloom_${name})
  target_include_directories(spikeloom_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(spikeloom_${name} PUBLIC ${M_DEPENDS} PRIVATE spikeloom::options ${M_PRIVATE_DEPENDS})
endfunction()

# spikeloom_test(NAME SOURCES ... DEPENDS ... [LABELS ...]): one GoogleTest program, each of its tests seen by ctest.
function(spikeloom_test name)
  cmake_parse_arguments(T "" "TIMEOUT" "SOURCES;DEPENDS;LABELS" ${ARGN})
  add_executable(test_${name} ${T_SOURCES})
  target_link_libraries(test_${name} PRIVATE spikeloom::options ${T_DEPENDS} GTest::gtest_main)
  target_include_directories(test_${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(test_${name} PRIVATE SPIKELOOM_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 300)
  endif()
  gtest_discover_tests(test_${name} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT ${T_TIMEOUT} LABELS "${T_LABELS}")
endfunction()
