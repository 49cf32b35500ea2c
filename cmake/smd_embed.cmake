# smd_embed(<module> <what> <out-var>)
# Makes a source file that holds a file of the module as the bytes from smd_embedded_<what> to
# smd_embedded_<what>_end, where the symbols leave out the file's ending.
# `page` is the built page of the viewer; without it, a page that says how to build it.
function(smd_embed module what out)
  set(dir ${CMAKE_SOURCE_DIR}/smd/${module})
  if(what STREQUAL page)
    # Looked for at each build, so that a page that was built later is taken.
    file(GLOB file CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/viewer/dist/index.html)
    if(NOT file)
      set(file ${dir}/missing_page.html)
      message(NOTICE "The page of 'smdebug serve' has not been built; tools/page.sh builds it.")
    endif()
  else()
    set(file ${dir}/${what})
  endif()
  get_filename_component(stem ${what} NAME_WE)
  set(symbol smd_embedded_${stem})
  set(source ${CMAKE_BINARY_DIR}/generated/smd/${module}/${symbol}.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT
"__asm__(\".section .rodata\\n\"
        \".global ${symbol}\\n\"
        \".global ${symbol}_end\\n\"
        \"${symbol}:\\n\"
        \".incbin \\\"${file}\\\"\\n\"
        \"${symbol}_end:\\n\"
        \".byte 0\\n\"
        \".previous\\n\");
")
  set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS ${file})
  set(${out} ${source} PARENT_SCOPE)
endfunction()
