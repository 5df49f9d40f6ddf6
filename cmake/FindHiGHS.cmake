# Debian 13's libhighs-dev ships a broken pkg-config and CMake file: look for header and library ourselves.
find_path(HiGHS_INCLUDE_DIR interfaces/highs_c_api.h PATH_SUFFIXES highs)
find_library(HiGHS_LIBRARY highs)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(HiGHS REQUIRED_VARS HiGHS_LIBRARY HiGHS_INCLUDE_DIR)
if(HiGHS_FOUND AND NOT TARGET HiGHS::HiGHS)
  if(HiGHS_LIBRARY MATCHES "\\.a$") # brings no C++ library of its own
    add_library(HiGHS::HiGHS STATIC IMPORTED)
    set_target_properties(HiGHS::HiGHS PROPERTIES IMPORTED_LINK_INTERFACE_LANGUAGES CXX)
  else()
    add_library(HiGHS::HiGHS UNKNOWN IMPORTED)
  endif()
  set_target_properties(HiGHS::HiGHS PROPERTIES IMPORTED_LOCATION ${HiGHS_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${HiGHS_INCLUDE_DIR})
endif()
