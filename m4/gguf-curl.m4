# SPDX-License-Identifier: MIT
# GGUF_CURL: --with-curl[=auto|yes|no]. With libcurl tools read models on
# servers: sets CURL_CFLAGS, curl_module and HAVE_CURL. It is loaded when it is
# needed (tools/common/remote_http.c), not linked. pkg-config may find headers
# for the building machine only, which the compiler must find, too.
AC_DEFUN([GGUF_CURL], [
AC_ARG_WITH([curl],
  [AS_HELP_STRING([--with-curl@<:@=auto@:>@],
    [tools read models on servers (https://, hf://) with libcurl; =auto: where
     it is there @<:@auto@:>@])],
  [], [with_curl=auto])
curl_module=none
AS_IF([test "x$with_curl" != xno && test "x$enable_tools" = xyes],
  [PKG_CHECK_MODULES([CURL], [libcurl >= 7.62],
    [gguf_cppflags=$CPPFLAGS
     CPPFLAGS="$CPPFLAGS $CURL_CFLAGS"
     AC_CHECK_HEADER([curl/curl.h], [curl_module=libcurl], [CURL_CFLAGS=])
     CPPFLAGS=$gguf_cppflags], [:])
   AS_IF([test "x$with_curl" != xauto && test "x$curl_module" = xnone],
     [AC_MSG_ERROR([no libcurl for this host (--with-curl=$with_curl)])])])
AM_CONDITIONAL([HAVE_CURL], [test "x$curl_module" != xnone])
])
