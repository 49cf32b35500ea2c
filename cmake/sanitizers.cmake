# SMD_SANITIZE=address,undefined | thread applies to everything built here.
if(SMD_SANITIZE)
  add_compile_options(-fsanitize=${SMD_SANITIZE} -fno-omit-frame-pointer)
  if(SMD_SANITIZE MATCHES undefined)
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
  add_link_options(-fsanitize=${SMD_SANITIZE})
endif()
