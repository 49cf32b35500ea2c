# smd_catalog(<module> <folder> <out-var>)
# Lists smd/<module>/<folder>/*.cpp and generates <module>_<folder>_catalog.inc with one line
# SMD_CATALOG_ENTRY(stem) per file, sorted by name. Each file defines one constant named like its stem.
# Adding a thing therefore means adding a file: there is no list to edit.
function(smd_catalog module folder out)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/smd/${module}/${folder}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "_(test|bench)\\.cpp$")
  list(SORT sources)
  set(lines "")
  foreach(source IN LISTS sources)
    get_filename_component(stem ${source} NAME_WE)
    string(APPEND lines "SMD_CATALOG_ENTRY(${stem})\n")
  endforeach()
  set(file ${CMAKE_BINARY_DIR}/generated/smd/${module}/${folder}_catalog.inc)
  file(CONFIGURE OUTPUT ${file} CONTENT "${lines}")
  set(${out} ${sources} PARENT_SCOPE)
endfunction()
