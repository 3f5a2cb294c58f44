# SPDX-License-Identifier: MIT
# GGUF_DEBUG: assertions are off without --enable-debug.
AC_DEFUN([GGUF_DEBUG], [
AC_ARG_ENABLE([debug],
  [AS_HELP_STRING([--enable-debug], [check internal invariants at run time])],
  [], [enable_debug=no])
AS_IF([test "x$enable_debug" = xno],
  [AC_SUBST([GGUF_CPPFLAGS], [-DNDEBUG])])
])

# GGUF_SANITIZER(NAME, WHAT): --enable-NAME
AC_DEFUN([GGUF_SANITIZER], [
AC_ARG_ENABLE([$1],
  [AS_HELP_STRING([--enable-$1], [build with $2])],
  [], [enable_$1=no])
AS_IF([test "x$enable_$1" = xyes], [gguf_san="$gguf_san $1"])
])

# GGUF_SANITIZERS: --enable-asan, -ubsan, -tsan, -coverage, -fuzz. The flags go
# to compiling and linking of everything in this tree. --enable-fuzz turns asan
# and ubsan on unless they are disabled by name.
AC_DEFUN([GGUF_SANITIZERS], [
AS_IF([test "x$enable_fuzz" = xyes],
  [: "${enable_asan=yes}" "${enable_ubsan=yes}"
   gguf_save_CFLAGS=$CFLAGS
   CFLAGS="$CFLAGS -fsanitize=fuzzer"
   AC_LINK_IFELSE([AC_LANG_SOURCE([
int LLVMFuzzerTestOneInput(const unsigned char *p, unsigned long n);
int LLVMFuzzerTestOneInput(const unsigned char *p, unsigned long n)
{
    return n && p@<:@0@:>@ > 255;
}])], [],
     [AC_MSG_ERROR([--enable-fuzz needs libFuzzer: try CC=clang])])
   CFLAGS=$gguf_save_CFLAGS])
gguf_san=
gguf_san_flags=
GGUF_SANITIZER([asan], [AddressSanitizer])
GGUF_SANITIZER([ubsan], [UndefinedBehaviorSanitizer])
GGUF_SANITIZER([tsan], [ThreadSanitizer])
GGUF_SANITIZER([coverage], [counters for gcov])
GGUF_SANITIZER([fuzz], [libFuzzer, asan and ubsan])
AS_IF([test "x$enable_asan" = xyes],
  [gguf_san_flags="$gguf_san_flags -fsanitize=address -fno-omit-frame-pointer"])
AS_IF([test "x$enable_ubsan" = xyes],
  [gguf_san_flags="$gguf_san_flags -fsanitize=undefined -fno-sanitize-recover=undefined"])
AS_IF([test "x$enable_tsan" = xyes],
  [gguf_san_flags="$gguf_san_flags -fsanitize=thread"])
AS_IF([test "x$enable_coverage" = xyes],
  [gguf_san_flags="$gguf_san_flags --coverage"])
AS_IF([test "x$enable_fuzz" = xyes],
  [gguf_san_flags="$gguf_san_flags -fsanitize=fuzzer-no-link"
   gguf_ignore='$(top_srcdir)/tests/fuzz/uninstrumented.txt'
   gguf_san_flags="$gguf_san_flags -fsanitize-ignorelist=$gguf_ignore"
   gguf_san_flags="$gguf_san_flags -fsanitize-coverage-ignorelist=$gguf_ignore"])
AS_IF([test -n "$gguf_san"],
  [AC_DEFINE([GGUF_INSTRUMENTED], [1],
     [Define to 1 when sanitizers or counters are built in.])])
AM_CONDITIONAL([BUILD_FUZZ], [test "x$enable_fuzz" = xyes])
AC_SUBST([GGUF_SAN_CFLAGS], [$gguf_san_flags])
])
