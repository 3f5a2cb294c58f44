#!/bin/sh
# SPDX-License-Identifier: MIT
# static.sh - an archive of tools for Linux that need no library
#
#   packaging/static.sh PROCESSOR SOURCES
#
# PROCESSOR is x86_64 or aarch64. SOURCES is the folder of sources that
# static-deps.sh describes, with those of musl, whose licence the archive
# contains, too:
#
#   apt-get source zlib xxhash pcre2 jansson musl
#
# Makes libgguf-VERSION-linux-PROCESSOR.tar.xz in the current folder, from
# builds in static-PROCESSOR/. The tools are linked with musl; libcurl, xz and
# zstd are left out. CC compiles for musl, and AR and STRIP know its files; by
# default CC is musl-gcc for x86_64 and zig for aarch64, the others are llvm's.
# (zig 0.14 cannot link kernels for x86_64: it lacks gcc's list of a processor's
# features.) With equal compilers and an equal SOURCE_DATE_EPOCH (default: 0)
# the archive has equal bytes.
set -eu
test $# -eq 2 || { sed -n '/^# static/,/^set/s/^# \{0,1\}//p' "$0"; exit 2; } >&2
top=$(cd "$(dirname "$0")/.." && pwd)
sources=$(cd "$2" && pwd)
version=$(sed -n 's/^AC_INIT(\[libgguf\], \[\([0-9.]*\)\].*/\1/p' "$top/configure.ac")
case $1 in
x86_64) : "${CC=musl-gcc}" ;;
*) : "${CC=zig cc -target $1-linux-musl}" ;;
esac
: "${AR=llvm-ar}" "${STRIP=llvm-strip}"
: "${SOURCE_DATE_EPOCH=0}"
export CC AR STRIP
name=libgguf-$version-linux-$1
mkdir -p "static-$1/build"
cd "static-$1"
here=$(pwd)
"$top/packaging/static-deps.sh" "$sources" deps
cd build
# Names of folders are kept out of the tools.
PKG_CONFIG_LIBDIR=$here/deps/lib/pkgconfig \
    "$top/configure" -q --host="$1-linux-musl" --prefix=/ --disable-shared \
    --with-curl=no CC_FOR_BUILD="${CC_FOR_BUILD-cc}" \
    CFLAGS="-O2 -g0 -ffile-prefix-map=$top=. -ffile-prefix-map=$here=." \
    RANLIB="$AR s"
make -s -j"$(getconf _NPROCESSORS_ONLN)" LDFLAGS=-all-static
rm -rf "${here:?}/$name"
make -s install DESTDIR="$here/$name"
cd ..
"$STRIP" "$name"/bin/*
(cd "$name" && rm -rf include lib share/man/man3)
mkdir "$name/share/doc/libgguf/licences"
for licence in deps/licences/* "$sources"/musl-*/COPYRIGHT; do
    library=${licence%/COPYRIGHT} library=${library##*/}
    cp "$licence" "$name/share/doc/libgguf/licences/${library%%-*}"
done
mv "$name/share/doc/libgguf/README" "$name/share/doc/libgguf/COPYING" "$name"
tar --format=ustar --sort=name --owner=0 --group=0 --numeric-owner \
    --mode=u+rw,go=rX --mtime="@$SOURCE_DATE_EPOCH" -cf "../$name.tar" "$name"
xz -9 -T1 -f "../$name.tar"
