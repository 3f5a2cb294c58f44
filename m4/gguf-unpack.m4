# SPDX-License-Identifier: MIT
# GGUF_UNPACK: libraries with which tools read compressed texts; sets
# unpack_modules and UNPACK_CPPFLAGS for each. zlib is required, xz and zstd
# are optional.
#
# pkg-config may find a library for the building machine only, or for another
# width: an optional library counts only if a program links with it.
AC_DEFUN([GGUF_UNPACK_ONE], [ # NAME, PREFIX, module, a function
PKG_CHECK_MODULES([$2], [$3],
  [AC_MSG_CHECKING([whether programs link with $2_LIBS])
   gguf_libs=$LIBS
   LIBS="$$2_LIBS $LIBS"
   AC_LINK_IFELSE([AC_LANG_CALL([], [$4])],
     [AC_MSG_RESULT([yes])
      UNPACK_CPPFLAGS="$UNPACK_CPPFLAGS -DHAVE_$2=1"
      unpack_modules="$unpack_modules $1"],
     [AC_MSG_RESULT([no])
      $2_CFLAGS= $2_LIBS=])
   LIBS=$gguf_libs],
  [:])
])
AC_DEFUN([GGUF_UNPACK], [
AS_IF([test "x$enable_tools" = xyes],
  [PKG_CHECK_MODULES([ZLIB], [zlib],
     [AC_DEFINE([HAVE_ZLIB], [1], [Define if zlib is there.])])
   unpack_modules=gzip
   GGUF_UNPACK_ONE([xz], [LZMA], [liblzma >= 5.2], [lzma_code])
   GGUF_UNPACK_ONE([zstd], [ZSTD], [libzstd >= 1.4], [ZSTD_decompressStream])])
AC_SUBST([UNPACK_CPPFLAGS])
])
