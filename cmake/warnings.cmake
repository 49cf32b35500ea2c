add_library(smd_warnings INTERFACE)
target_compile_options(smd_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
                       -Wno-sign-conversion -Wno-missing-field-initializers -Werror=return-type -Werror=unused-result)
