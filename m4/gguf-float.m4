# SPDX-License-Identifier: MIT
# GGUF_FLOAT: FLOAT_CFLAGS makes the compiler compute floats as floats, without
# which codecs are not exact. x87, the default on 32-bit x86, computes with
# more bits. So does gcc for s390x under -std=c11, with which this tree is
# compiled, but not under its default: products and sums are doubles until they
# are assigned.
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
