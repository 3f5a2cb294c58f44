# SPDX-License-Identifier: MIT
# GGUF_FLOAT: FLOAT_CFLAGS, what it takes to compute floats as floats. Codecs
# are exact only then; x87, the default on 32-bit x86, has other ideas, and so
# has gcc for s390x under -std=c11, which our sources are compiled with, but
# not under its default: products and sums are doubles there until assigned.
AC_DEFUN([GGUF_FLOAT], [
AC_CACHE_CHECK([for flags that compute floats as floats], [gguf_cv_float], [
  gguf_save_CFLAGS=$CFLAGS
  gguf_cv_float=no
  for gguf_f in '' '-msse2 -mfpmath=sse' '-fexcess-precision=fast'; do
    CFLAGS="$gguf_save_CFLAGS -std=c11 $gguf_f"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <float.h>
#if FLT_EVAL_METHOD != 0
# error
#endif
]])], [gguf_cv_float=$gguf_f; break])
  done
  CFLAGS=$gguf_save_CFLAGS])
AS_IF([test "x$gguf_cv_float" = xno],
  [AC_MSG_ERROR([the compiler computes floats with more digits: see FLT_EVAL_METHOD])])
AC_SUBST([FLOAT_CFLAGS], [$gguf_cv_float])
])
