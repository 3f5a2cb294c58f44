# SPDX-License-Identifier: MIT
# GGUF_COMPLETION: folders for completion of the tools' options. Files are made
# by asking the built tools, so a cross build lacks them.
AC_DEFUN([GGUF_COMPLETION], [
AC_ARG_WITH([bash-completion-dir],
  [AS_HELP_STRING([--with-bash-completion-dir=DIR],
    [where completion for bash goes, or no
     [DATADIR/bash-completion/completions]])],
  [], [with_bash_completion_dir=yes])
AC_ARG_WITH([zsh-completion-dir],
  [AS_HELP_STRING([--with-zsh-completion-dir=DIR],
    [where completion for zsh goes, or no [DATADIR/zsh/site-functions]])],
  [], [with_zsh_completion_dir=yes])
AS_CASE([$with_bash_completion_dir],
  [yes], [bashcompletiondir='${datadir}/bash-completion/completions'],
  [bashcompletiondir=$with_bash_completion_dir])
AS_CASE([$with_zsh_completion_dir],
  [yes], [zshcompletiondir='${datadir}/zsh/site-functions'],
  [zshcompletiondir=$with_zsh_completion_dir])
AS_IF([test "x$cross_compiling" = xyes || test "x$enable_tools" != xyes],
  [bashcompletiondir=no zshcompletiondir=no])
AC_SUBST([bashcompletiondir])
AC_SUBST([zshcompletiondir])
AM_CONDITIONAL([BASH_COMPLETION], [test "x$bashcompletiondir" != xno])
AM_CONDITIONAL([ZSH_COMPLETION], [test "x$zshcompletiondir" != xno])
gguf_completion=
AS_IF([test "x$bashcompletiondir" != xno], [gguf_completion=' bash'])
AS_IF([test "x$zshcompletiondir" != xno],
  [gguf_completion="$gguf_completion zsh"])
])
