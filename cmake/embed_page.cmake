# Writes the report's style sheets and script as C++ strings, so that the program carries them in itself.
#
#   cmake -D REPORT=prism/report -D OUT=build/release/prism/page_files.cpp -P cmake/embed_page.cmake
#
# Each string begins with a line break, which ends the line of the element that it is put into.

function(read_page_file variable name)
  file(READ ${REPORT}/${name} text)
  set(${variable} "\n${text}" PARENT_SCOPE)
endfunction()

# The hash of a text as content security policies write it: SHA-256 in base64, three hexadecimal digits of which make
# two digits.
function(policy_hash variable text)
  string(SHA256 hex "${text}")
  set(digits ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/)
  set(base64 "")
  foreach(place RANGE 0 63 3)
    string(SUBSTRING ${hex}00 ${place} 3 group)
    math(EXPR high "0x${group} >> 6")
    math(EXPR low "0x${group} & 63")
    string(SUBSTRING ${digits} ${high} 1 first)
    string(SUBSTRING ${digits} ${low} 1 second)
    string(APPEND base64 ${first}${second})
  endforeach()
  # The 256 bits fill 43 digits; the last one is padding.
  string(SUBSTRING ${base64} 0 43 base64)
  set(${variable} "sha256-${base64}=" PARENT_SCOPE)
endfunction()

read_page_file(colours draw/colours.css)
read_page_file(heat_map draw/heat_map.css)
read_page_file(style page/page.css)
read_page_file(script page/page.js)
policy_hash(hash "${script}")

file(WRITE ${OUT} "// Made by cmake/embed_page.cmake.
#include \"prism/report/page/page_script.h\"
#include \"prism/report/page/page_style.h\"

namespace prism {

const char* const kPageColours = R\"css(${colours})css\";
const char* const kHeatMapStyle = R\"css(${heat_map})css\";
const char* const kPageStyle = R\"css(${style})css\";
const char* const kPageScript = R\"js(${script})js\";
const char* const kPageScriptHash = \"${hash}\";

}  // namespace prism
")
