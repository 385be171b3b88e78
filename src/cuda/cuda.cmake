# The CUDA backend, where a CUDA compiler is found; otherwise one file that says there is none. Included by src/CMakeLists.txt, so
# that the library sees the imported targets.
set(cenote_cuda_found OFF)
if(CENOTE_CUDA)
  include(CheckLanguage)
  if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
    find_program(cenote_nvcc nvcc HINTS /usr/local/cuda/bin)
    if(cenote_nvcc)
      set(CMAKE_CUDA_COMPILER ${cenote_nvcc})
    endif()
  endif()
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    # Machine code for Ampere and Hopper, PTX for what comes after.
    set(CMAKE_CUDA_ARCHITECTURES 80-real 90 CACHE STRING "GPUs to compile for")
  endif()
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    find_package(CUDAToolkit REQUIRED)
    set(cenote_cuda_found ON)
  else()
    message(STATUS "cenote: no CUDA compiler found, the CUDA backend is left out")
  endif()
endif()
set(CENOTE_HAS_CUDA ${cenote_cuda_found} CACHE INTERNAL "Whether the CUDA backend is built")

if(NOT cenote_cuda_found)
  target_sources(cenote PRIVATE cuda/absent.cpp)
  return()
endif()

add_library(cenote_cuda OBJECT
  cuda/backend.cu cuda/choose.cu cuda/choose_backward.cu cuda/choose_forward.cu cuda/choose_gathers.cu cuda/choose_long.cu
  cuda/choose_spreads.cu
  cuda/cut_cells.cu cuda/cut_strips.cu cuda/cut_windows.cu
  cuda/device.cpp cuda/launch.cu cuda/memory.cpp cuda/simplify.cpp cuda/tiling.cu
  cuda/kernels_bf16.cu cuda/kernels_f16.cu cuda/kernels_f32.cu cuda/kernels_f64.cu cuda/kernels_i16.cu cuda/kernels_i32.cu
  cuda/kernels_i64.cu cuda/kernels_i8.cu cuda/kernels_u8.cu)
cenote_settings(cenote_cuda)
set_target_properties(cenote_cuda PROPERTIES POSITION_INDEPENDENT_CODE ON CUDA_VISIBILITY_PRESET hidden)
# No fused multiply-add: the bits of the max family's gradients must be the CPU's, and every architecture's alike.
target_compile_options(cenote_cuda PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20 -fmad=false --expt-relaxed-constexpr -Xcompiler=-Wall>)
if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.8)
  target_compile_options(cenote_cuda PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--compress-mode=size>)  # a third of the size
endif()
target_include_directories(cenote_cuda PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(cenote_cuda PUBLIC CUDA::cudart_static)
target_sources(cenote PRIVATE $<TARGET_OBJECTS:cenote_cuda>)
target_link_libraries(cenote PRIVATE CUDA::cudart_static)
target_compile_definitions(cenote PRIVATE CENOTE_HAS_CUDA=1)
