# What `cmake --install` leaves: headers, both libraries, pkg-config and CMake package files, the command with its man page
# and bash completion (both written by the command itself, from the tables that it parses with), and the documentation.
include(CMakePackageConfigHelpers)

install(DIRECTORY include/moirai DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(TARGETS moirai_shared moirai_static EXPORT moirai
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})

if(TARGET moirai_learn) # loaded by name, not linked: among the libraries, but not on the linker's way
  install(TARGETS moirai_learn LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/moirai)
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/moirai)
install(EXPORT moirai NAMESPACE moirai:: FILE moiraiTargets.cmake DESTINATION ${package_dir})
configure_package_config_file(cmake/moiraiConfig.cmake.in ${PROJECT_BINARY_DIR}/moiraiConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/moiraiConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/moiraiConfig.cmake ${PROJECT_BINARY_DIR}/moiraiConfigVersion.cmake cmake/FindHiGHS.cmake
  DESTINATION ${package_dir})

set(MOIRAI_PC_PRIVATE "-lyyjson -lpthread -lm -ldl")
if(MOIRAI_HAVE_HIGHS)
  string(PREPEND MOIRAI_PC_PRIVATE "-lhighs ")
endif()
if(MOIRAI_HAVE_ONNX)
  string(PREPEND MOIRAI_PC_PRIVATE "-lprotobuf-c ")
endif()
file(RELATIVE_PATH MOIRAI_PC_PREFIX /x/${CMAKE_INSTALL_LIBDIR}/pkgconfig /x) # wherever it is installed to
configure_file(cmake/moirai.pc.in ${PROJECT_BINARY_DIR}/moirai.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/moirai.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

if(TARGET moirai)
  install(TARGETS moirai RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  set(man ${PROJECT_BINARY_DIR}/moirai.1)
  set(completion ${PROJECT_BINARY_DIR}/moirai.bash)
  add_custom_command(OUTPUT ${man} ${completion}
    COMMAND moirai help --man > ${man}
    COMMAND moirai help --bash > ${completion}
    DEPENDS moirai VERBATIM)
  add_custom_target(moirai_manual ALL DEPENDS ${man} ${completion})
  install(FILES ${man} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES ${completion} DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME moirai)
endif()
# The book, with the paths that its links have; and the programs that it quotes.
install(FILES LICENSE README.md CHANGELOG.md CONTRIBUTING.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md" PATTERN "*.svg")
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.c" PATTERN "*.py")

# All that is installed and nothing else: what scripts/demo builds, and a user who wants no tests.
add_custom_target(moirai_install DEPENDS moirai_shared moirai_static)
if(TARGET moirai_learn)
  add_dependencies(moirai_install moirai_learn)
endif()
if(TARGET moirai)
  add_dependencies(moirai_install moirai moirai_manual)
endif()
