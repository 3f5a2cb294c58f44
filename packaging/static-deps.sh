#!/bin/sh
# SPDX-License-Identifier: MIT
# static-deps.sh - zlib, xxHash, PCRE2 and Jansson as static libraries for any
# compiler
#
#   CC=COMPILER AR=ARCHIVER packaging/static-deps.sh SOURCES PREFIX
#
# SOURCES contains the libraries' unpacked sources, NAME-VERSION each, as
#
#   apt-get source zlib xxhash pcre2 jansson
#
# unpacks them. PREFIX receives include, lib, lib/pkgconfig, and licences, which
# go along with programs. For a build with these libraries:
#
#   PKG_CONFIG_LIBDIR=PREFIX/lib/pkgconfig ./configure --host=HOST CC=COMPILER
#
# CFLAGS are -O2 -g0 by default. The files are compiled by CC alone, so that one
# script serves systems that each library's own build supports differently:
#
#   CC=musl-gcc                                     AR=ar
#   CC='zig cc -target aarch64-linux-musl'          AR='zig ar'
#   CC='zig cc -target aarch64-macos'               AR='zig ar'
#   CC=x86_64-w64-mingw32-gcc-posix                 AR=x86_64-w64-mingw32-ar
set -eu
: "${CC:?names no compiler}" "${AR=ar}" "${CFLAGS=-O2 -g0}"
test $# -eq 2 || { sed -n '/^# static/,/^set/s/^# \{0,1\}//p' "$0"; exit 2; } >&2
sources=$(cd "$1" && pwd)
mkdir -p "$2/include" "$2/lib/pkgconfig" "$2/licences"
prefix=$(cd "$2" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The folder of a library, in $from.
find_source() # name, in lower case or not
{
    for from in "$sources"/*; do
        case $from in */$1-[0-9]*) test ! -d "$from" || return 0 ;; esac
    done
    echo "static-deps.sh: $sources: no folder $1-VERSION" >&2
    exit 1
}

# Make lib/libNAME.a of files in the current folder, and its .pc file.
library() # name, module, options of all users, options of this build, file...
{
    name=$1 module=$2 public=$3 private=$4
    shift 4
    rm -f ./*.o "$prefix/lib/lib$name.a"
    # shellcheck disable=SC2086 # compiler and options are words
    printf '%s\n' "$@" | xargs -n 1 -P "$(getconf _NPROCESSORS_ONLN)" \
        $CC $CFLAGS -w $public $private -I. -c
    $AR rc "$prefix/lib/lib$name.a" ./*.o
    cp "$from"/LICEN[CS]E "$prefix/licences/$module"
    cat >"$prefix/lib/pkgconfig/$module.pc" <<PC
prefix=$prefix
Name: $module
Description: $module, static
Version: ${from##*-}
Libs: -L\${prefix}/lib -l$name
Cflags: -I\${prefix}/include $public
PC
}

copy() # folder: its C files to $work, which becomes the current folder
{
    rm -rf "${work:?}"/*
    cp "$1"/*.[ch]* "$work"
    cd "$work"
}

find_source zlib
copy "$from"
# A macro of that name keeps it from one that breaks macOS's headers.
library z zlib '' '-DHAVE_UNISTD_H -Dfdopen=fdopen' ./*.c
cp zlib.h zconf.h "$prefix/include"

find_source '[xX][xX][hH]ash'
copy "$from"
library xxhash libxxhash '' '' xxhash.c
cp xxhash.h xxh3.h "$prefix/include"

# As its NON-AUTOTOOLS-BUILD says.
find_source pcre2
copy "$from/src"
cp config.h.generic config.h
cp pcre2.h.generic pcre2.h
cp pcre2_chartables.c.dist pcre2_chartables.c
rm -f pcre2_*test.c pcre2_dftables.c pcre2_fuzzsupport.c pcre2_printint.c
# Files that others include are not compiled by themselves.
# shellcheck disable=SC2046,SC2012 # names are words
library pcre2-8 libpcre2-8 -DPCRE2_STATIC \
    '-DHAVE_CONFIG_H -DSUPPORT_UNICODE -DPCRE2_CODE_UNIT_WIDTH=8' \
    $(ls pcre2_*.c | sed '/_jit_m/d; /_ucptables/d')
cp pcre2.h "$prefix/include"

find_source '[jJ]ansson'
copy "$from/src"
sed 's/@json_inline@/inline/; s/@json_parser_max_depth@/2048/; s/@json_[a-z_]*@/1/' \
    jansson_config.h.in >jansson_config.h
: >jansson_private_config.h
library jansson jansson '' '-DHAVE_STDINT_H -DHAVE_LOCALE_H -DHAVE_UNISTD_H
    -DHAVE_FCNTL_H -DHAVE_SYS_STAT_H -DHAVE_SYS_TYPES_H -DHAVE_OPEN
    -DHAVE_CLOSE -DHAVE_READ -DUSE_URANDOM -DUSE_WINDOWS_CRYPTOAPI
    -DHAVE_ATOMIC_BUILTINS -DHAVE_SCHED_H -DHAVE_SCHED_YIELD' ./*.c
cp jansson.h jansson_config.h "$prefix/include"
