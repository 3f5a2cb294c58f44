# SPDX-License-Identifier: MIT
# GGUF_BLAS: --with-blas[=MODULE]. A library with the C interface of BLAS,
# found by pkg-config: sets BLAS_CFLAGS, BLAS_LIBS, BLAS_MODULE and HAVE_BLAS.
#
# Off by default: OpenBLAS starts its threads when it is loaded, and so would
# every program that links libgguf.
AC_DEFUN([GGUF_BLAS], [
AC_ARG_WITH([blas],
  [AS_HELP_STRING([--with-blas@<:@=MODULE@:>@],
    [a backend on a BLAS library: the pkg-config module, or without one the
     first that is there of openblas, blis, cblas; =auto for none where there
     is none @<:@no@:>@])],
  [], [with_blas=no])
blas_module=none
AS_CASE([$with_blas],
  [no], [gguf_blas_try=],
  [yes|auto], [gguf_blas_try="openblas blis cblas"],
  [gguf_blas_try=$with_blas])
for gguf_m in $gguf_blas_try; do
  AS_IF([test "x$blas_module" = xnone],
    [PKG_CHECK_EXISTS([$gguf_m], [blas_module=$gguf_m])])
done
AS_IF([test "x$blas_module" != xnone], [
  PKG_CHECK_MODULES([BLAS], [$blas_module])
  gguf_save_CFLAGS=$CFLAGS gguf_save_LIBS=$LIBS
  CFLAGS="$CFLAGS $BLAS_CFLAGS" LIBS="$BLAS_LIBS $LIBS"
  AC_MSG_CHECKING([for cblas_sgemm in $blas_module])
  AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <cblas.h>]],
      [[float x = 1; cblas_sgemm(CblasColMajor, CblasTrans, CblasNoTrans,
                                 1, 1, 1, 1, &x, 1, &x, 1, 0, &x, 1);]])],
    [AC_MSG_RESULT([yes])], [AC_MSG_RESULT([no]); blas_module=none])
  AC_CHECK_FUNCS([openblas_set_num_threads openblas_get_num_threads \
                  bli_thread_set_num_threads bli_thread_get_num_threads])
  CFLAGS=$gguf_save_CFLAGS LIBS=$gguf_save_LIBS])
AS_IF([test "x$blas_module" = xnone],
  [AS_CASE([$with_blas], [no|auto], [],
    [AC_MSG_ERROR([no BLAS library with cblas.h found by pkg-config (--with-blas=$with_blas)])])
   BLAS_CFLAGS= BLAS_LIBS=],
  [gguf_blas_version=`$PKG_CONFIG --modversion $blas_module`
   AC_SUBST([BLAS_MODULE], [$blas_module])
   AC_DEFINE_UNQUOTED([BLAS_NAME], ["$blas_module $gguf_blas_version"],
     [The BLAS library that was found.])])
AC_SUBST([BLAS_CFLAGS])
AC_SUBST([BLAS_LIBS])
AM_CONDITIONAL([HAVE_BLAS], [test "x$blas_module" != xnone])
])
