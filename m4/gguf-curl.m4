# SPDX-License-Identifier: MIT
# GGUF_CURL: --with-curl[=auto|yes|no]. With libcurl tools read models on
# servers: sets CURL_CFLAGS, curl_module and HAVE_CURL. It is loaded when it is
# needed (tools/common/remote_http.c), not linked.
AC_DEFUN([GGUF_CURL], [
AC_ARG_WITH([curl],
  [AS_HELP_STRING([--with-curl@<:@=auto@:>@],
    [tools read models on servers (https://, hf://) with libcurl; =auto: where
     it is there @<:@auto@:>@])],
  [], [with_curl=auto])
curl_module=none
AS_IF([test "x$with_curl" != xno && test "x$enable_tools" = xyes],
  [PKG_CHECK_MODULES([CURL], [libcurl >= 7.62], [curl_module=libcurl],
    [AS_IF([test "x$with_curl" != xauto],
      [AC_MSG_ERROR([no libcurl found by pkg-config (--with-curl=$with_curl)])])])])
AM_CONDITIONAL([HAVE_CURL], [test "x$curl_module" != xnone])
])
