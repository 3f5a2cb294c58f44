#!/bin/sh
# SPDX-License-Identifier: MIT
# abi.sh - do programs that were linked with the last release still run?
#
#   tests/abi.sh why SOURCE         print why this cannot be tested, if so
#   tests/abi.sh SOURCE BUILD       compare the library in BUILD, built from
#                                   SOURCE, a git checkout, with that of the
#                                   last tag, which is built in BUILD/tag
#
# abidiff reads both libraries by their debugging data: configure with -g.
# tests/abi.suppr lists the allowed changes (additions, and structs that grow
# at their end). A library with another soname is not compared. This is a row
# of matrix.sh.
set -eu
last_tag() {
    git -C "$1" describe --tags --abbrev=0 2>/dev/null
}
if test "$1" = why; then
    if ! command -v abidiff >/dev/null; then echo "abidiff is not here"
    elif ! git -C "$2" rev-parse HEAD >/dev/null 2>&1; then
        echo "no git checkout"
    elif test -z "$(last_tag "$2")"; then echo "no tag to compare with"
    fi
    exit 0
fi
src=$1 build=$2
tag=$(last_tag "$src")
rm -rf "$build/tag"
mkdir -p "$build/tag/build"
git -C "$src" archive "$tag" | (cd "$build/tag" && tar -xf -)
(cd "$build/tag" && autoreconf -i && cd build &&
    ../configure -q CC="${CC-gcc}" --disable-tools &&
    make -s CFLAGS='-g -O2' libgguf.la)
soname() {
    readelf -d "$1" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p'
}
old=$build/tag/build/.libs/libgguf.so new=$build/.libs/libgguf.so
if test "$(soname "$old")" != "$(soname "$new")"; then
    echo "$(soname "$new") is another library than $tag's $(soname "$old")"
    exit 0
fi
echo "against $tag"
abidiff --no-added-syms --suppressions "$src/tests/abi.suppr" \
    --headers-dir1 "$build/tag/lib/gguf" --headers-dir2 "$src/lib/gguf" \
    "$old" "$new"
