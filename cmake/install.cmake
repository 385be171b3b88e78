# What `cmake --install` puts where, and the package that find_package(cenote) finds.
include(CMakePackageConfigHelpers)

set(cenote_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/cenote)

# Before 1.0 a minor version may break the binary interface.
set_target_properties(cenote PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})

install(TARGETS cenote EXPORT cenoteTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(TARGET cenote_cli)
  install(TARGETS cenote_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/cenote DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT cenoteTargets NAMESPACE cenote:: DESTINATION ${cenote_package_dir})

# A shared library brings what it needs; whoever links the static one must find the same packages again: those whose imported
# targets (package::target) the library links.
set(CENOTE_DEPENDENCIES "")
get_target_property(type cenote TYPE)
if(type STREQUAL "STATIC_LIBRARY")
  get_target_property(links cenote LINK_LIBRARIES)
  foreach(link IN LISTS links)
    if(link MATCHES "^CUDA::")
      string(APPEND CENOTE_DEPENDENCIES "find_dependency(CUDAToolkit)\n")
    elseif(link MATCHES "^([A-Za-z0-9]+)::")
      string(APPEND CENOTE_DEPENDENCIES "find_dependency(${CMAKE_MATCH_1})\n")
    endif()
  endforeach()
endif()

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/cenoteConfig.cmake.in ${PROJECT_BINARY_DIR}/cenoteConfig.cmake
  INSTALL_DESTINATION ${cenote_package_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cenoteConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/cenoteConfig.cmake ${PROJECT_BINARY_DIR}/cenoteConfigVersion.cmake
  DESTINATION ${cenote_package_dir})
