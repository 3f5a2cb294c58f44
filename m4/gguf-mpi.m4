# SPDX-License-Identifier: MIT
# GGUF_MPI: --with-mpi[=MODULE]. An MPI library, found by pkg-config or by
# asking its compiler: sets MPI_CFLAGS, MPI_LIBS, mpi_module and HAVE_MPI.
#
# Off by default: gguf-ppl would link it, and few who run gguf-ppl on one
# machine have it.
AC_DEFUN([GGUF_MPI], [
AC_ARG_WITH([mpi],
  [AS_HELP_STRING([--with-mpi@<:@=MODULE@:>@],
    [gguf-ppl --mpi, on an MPI library: the pkg-config module, or without one
     the first that is there of ompi-c, mpich, or mpicc; =auto for none where
     there is none @<:@no@:>@])],
  [], [with_mpi=no])
mpi_module=none
AS_CASE([$with_mpi],
  [no], [gguf_mpi_try=],
  [yes|auto], [gguf_mpi_try="ompi-c mpich"],
  [gguf_mpi_try=$with_mpi])
for gguf_m in $gguf_mpi_try; do
  AS_IF([test "x$mpi_module" = xnone],
    [PKG_CHECK_EXISTS([$gguf_m], [mpi_module=$gguf_m])])
done
AS_IF([test "x$mpi_module" != xnone],
  [PKG_CHECK_MODULES([MPI], [$mpi_module])],
  [AS_CASE([$with_mpi], [yes|auto], [
    AC_CHECK_PROGS([MPICC], [mpicc])
    AS_IF([test "x$MPICC" != x], [
      # ask Open MPI's compiler, else MPICH's, and drop the compiler's name
      AS_IF([gguf_say=`$MPICC --showme:compile 2>/dev/null`],
        [MPI_CFLAGS=$gguf_say MPI_LIBS=`$MPICC --showme:link`],
        [MPI_CFLAGS=`$MPICC -compile-info 2>/dev/null | sed 's/^@<:@^ @:>@* *//;s/ -c$//'`
         MPI_LIBS=`$MPICC -link-info 2>/dev/null | sed 's/^@<:@^ @:>@* *//'`])
      mpi_module=mpicc])])])
AS_IF([test "x$mpi_module" != xnone], [
  gguf_save_CFLAGS=$CFLAGS gguf_save_LIBS=$LIBS
  CFLAGS="$CFLAGS $MPI_CFLAGS" LIBS="$MPI_LIBS $LIBS"
  AC_MSG_CHECKING([for MPI 3 in $mpi_module])
  AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <mpi.h>]],
      [[MPI_Win w = MPI_WIN_NULL; MPI_Request r; long a = 1, b;
        MPI_Fetch_and_op(&a, &b, MPI_INT64_T, 0, 0, MPI_SUM, w);
        return MPI_Ibarrier(MPI_COMM_WORLD, &r);]])],
    [AC_MSG_RESULT([yes])], [AC_MSG_RESULT([no]); mpi_module=none])
  CFLAGS=$gguf_save_CFLAGS LIBS=$gguf_save_LIBS])
AS_IF([test "x$mpi_module" = xnone],
  [AS_CASE([$with_mpi], [no|auto], [],
    [AC_MSG_ERROR([no MPI library found by pkg-config or mpicc (--with-mpi=$with_mpi)])])
   MPI_CFLAGS= MPI_LIBS=])
AC_SUBST([MPI_CFLAGS])
AC_SUBST([MPI_LIBS])
AM_CONDITIONAL([HAVE_MPI], [test "x$mpi_module" != xnone])
])
