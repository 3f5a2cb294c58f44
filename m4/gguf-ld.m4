# SPDX-License-Identifier: MIT
# GGUF_LD_VERSION_SCRIPT: conditional HAVE_LD_VERSION_SCRIPT, set if the linker
# takes a GNU version script.
AC_DEFUN([GGUF_LD_VERSION_SCRIPT], [
dnl For Windows GNU ld takes one and exports everything.
AS_CASE([$host_os], [mingw*], [gguf_cv_ld_vs=no])
AC_CACHE_CHECK([whether the linker takes a version script], [gguf_cv_ld_vs], [
  gguf_save_LDFLAGS=$LDFLAGS
  echo 'V1 { global: main; local: *; };' > conftest.map
  LDFLAGS="$LDFLAGS -Wl,--version-script=conftest.map"
  AC_LINK_IFELSE([AC_LANG_PROGRAM()], [gguf_cv_ld_vs=yes], [gguf_cv_ld_vs=no])
  LDFLAGS=$gguf_save_LDFLAGS; rm -f conftest.map])
AM_CONDITIONAL([HAVE_LD_VERSION_SCRIPT], [test "x$gguf_cv_ld_vs" = xyes])
])

# GGUF_VISIBILITY: VISIBILITY_CFLAGS hides symbols without GGUF_API.
AC_DEFUN([GGUF_VISIBILITY], [
AC_CACHE_CHECK([for -fvisibility=hidden], [gguf_cv_vis], [
  gguf_save_CFLAGS=$CFLAGS; CFLAGS="$CFLAGS -Werror -fvisibility=hidden"
  AC_COMPILE_IFELSE([AC_LANG_PROGRAM()], [gguf_cv_vis=yes], [gguf_cv_vis=no])
  CFLAGS=$gguf_save_CFLAGS])
AS_IF([test "x$gguf_cv_vis" = xyes],
  [AC_SUBST([VISIBILITY_CFLAGS], [-fvisibility=hidden])])
])
