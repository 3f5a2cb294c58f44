# SPDX-License-Identifier: MIT
# GGUF_CHECK_ISA(NAME, LABEL, FLAGS, PROLOGUE, BODY, FEATURE)
# Can the compiler build this instruction set level? Sets NAME_CFLAGS, the
# conditional HAVE_NAME, HAVE_NAME in config.h, and adds LABEL to the summary.
# Programs ask at run time whether the processor has the level. With
# --enable-simd=native configure asks, too: FEATURE is the last of the level's
# features that processors got, by its name in gcc and clang. An empty FEATURE:
# the program of PROLOGUE and BODY, which returns 0, runs and must not be killed.
# Without an answer (a compiler that does not know the name, a cross build) the
# level is built.
AC_DEFUN([GGUF_CHECK_ISA], [
gguf_isa_$1=no
AS_IF([test "x$enable_simd" != xno], [
  AC_CACHE_CHECK([whether $CC can build $2 kernels], [gguf_cv_isa_$1], [
    gguf_save_CFLAGS=$CFLAGS
    CFLAGS="$3 $CFLAGS"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([$4], [$5])],
      [gguf_cv_isa_$1=yes], [gguf_cv_isa_$1=no])
    CFLAGS=$gguf_save_CFLAGS])
  gguf_isa_$1=$gguf_cv_isa_$1])
AS_IF([test "x$enable_simd$gguf_isa_$1" = xnativeyes], [
  AC_CACHE_CHECK([whether this processor has $2], [gguf_cv_here_$1], [
    gguf_cv_here_$1=unknown
    gguf_save_CFLAGS=$CFLAGS
    m4_ifval([$6], [], [CFLAGS="$3 $CFLAGS"])
    m4_pushdef([gguf_ask], m4_ifval([$6], [[AC_LANG_PROGRAM([],
      [[return !__builtin_cpu_supports("$6");]])]],
      [[AC_LANG_PROGRAM([$4], [$5])]]))
    AC_LINK_IFELSE([gguf_ask], [AC_RUN_IFELSE([gguf_ask],
      [gguf_cv_here_$1=yes], [gguf_cv_here_$1=no], [:])])
    m4_popdef([gguf_ask])
    CFLAGS=$gguf_save_CFLAGS])
  AS_IF([test $gguf_cv_here_$1 = no], [gguf_isa_$1=no])])
AM_CONDITIONAL([HAVE_$1], [test "x$gguf_isa_$1" = xyes])
AS_IF([test "x$gguf_isa_$1" = xyes],
  [AC_DEFINE([HAVE_$1], [1], [Define to 1 when $2 kernels are built.])
   gguf_isa_list="$gguf_isa_list $2"
   AC_SUBST([$1_CFLAGS], ["$3 $gguf_kern_cflags"])])
])

# GGUF_UNTRACKED: gguf_cv_untracked, a flag that keeps gcc from tracking
# variables through unrolled kernels for debuggers, which with -g takes half of
# the time. Lines and functions remain, and CFLAGS=-fvar-tracking overrides it.
AC_DEFUN([GGUF_UNTRACKED], [
AC_CACHE_CHECK([how $CC leaves out variables of kernels],
  [gguf_cv_untracked], [
  gguf_save_CFLAGS=$CFLAGS
  gguf_cv_untracked=-fno-var-tracking
  CFLAGS="$CFLAGS -Werror $gguf_cv_untracked"
  AC_COMPILE_IFELSE([AC_LANG_PROGRAM()], [], [gguf_cv_untracked=])
  CFLAGS=$gguf_save_CFLAGS])
])

# GGUF_VECTOR_STACK: gguf_vector_stack, how a variable of 256 bits can live on
# the stack: `aligned', a flag that makes it safe, or `no'. On 64-bit Windows
# gcc aligns the stack to 16 bytes and moves such variables by instructions that
# need 32 (its bug 54412). binutils 2.38 can encode moves that need none, which
# take the same time. clang aligns the stack.
AC_DEFUN([GGUF_VECTOR_STACK], [
AC_CACHE_CHECK([how $CC keeps vectors on the stack], [gguf_cv_vector_stack], [
  gguf_cv_vector_stack=aligned
  AS_CASE([$host_os], [mingw*],
    [AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#ifdef __clang__
# error
#endif
]])], [gguf_save_CFLAGS=$CFLAGS
      gguf_cv_vector_stack=-Wa,-muse-unaligned-vector-move
      CFLAGS="$CFLAGS $gguf_cv_vector_stack"
      AC_COMPILE_IFELSE([AC_LANG_PROGRAM()], [], [gguf_cv_vector_stack=no])
      CFLAGS=$gguf_save_CFLAGS])])])
AS_CASE([$gguf_cv_vector_stack],
  [no], [AC_MSG_WARN([no vector kernels: $CC misaligns vectors, use clang])
    enable_simd=no],
  [-*], [gguf_kern_cflags="$gguf_kern_cflags $gguf_cv_vector_stack"])
])

# GGUF_UNSCHEDULED: a flag in gguf_kern_cflags that keeps gcc on AArch64 from
# moving loads of kernels away from their uses before it assigns registers: sums
# would be in memory, up to a third more instructions. On x86 it is gcc's
# default. Processors that execute out of order need no such moves.
AC_DEFUN([GGUF_UNSCHEDULED], [
AC_CACHE_CHECK([how $CC keeps sums of kernels in registers],
  [gguf_cv_unscheduled], [
  gguf_cv_unscheduled=
  AS_CASE([$host_cpu], [aarch64|arm64*], [
    gguf_save_CFLAGS=$CFLAGS
    gguf_cv_unscheduled=-fno-schedule-insns
    CFLAGS="$CFLAGS -Werror $gguf_cv_unscheduled"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM()], [], [gguf_cv_unscheduled=])
    CFLAGS=$gguf_save_CFLAGS])])
gguf_kern_cflags="$gguf_kern_cflags $gguf_cv_unscheduled"
])

# GGUF_ARM_FLAGS: gguf_arm_v8 and gguf_arm_v82, flags for AArch64's versions 8.0
# and 8.2, to which features are added. zig takes a processor in place of a
# version, and gcc adds the features to a version alone.
AC_DEFUN([GGUF_ARM_FLAGS], [
AC_CACHE_CHECK([whether $CC knows versions of AArch64],
  [gguf_cv_arm_versions], [
  gguf_cv_arm_versions=no
  gguf_save_CFLAGS=$CFLAGS
  CFLAGS="$CFLAGS -march=armv8.2-a+dotprod"
  AC_COMPILE_IFELSE([AC_LANG_PROGRAM()], [gguf_cv_arm_versions=yes])
  CFLAGS=$gguf_save_CFLAGS])
gguf_arm_v8=-mcpu=generic gguf_arm_v82=-mcpu=generic
AS_IF([test $gguf_cv_arm_versions = yes],
  [gguf_arm_v8=-march=armv8-a gguf_arm_v82=-march=armv8.2-a])
])

# GGUF_SIMD: the levels that exist, one row each.
AC_DEFUN([GGUF_SIMD], [
AC_ARG_ENABLE([simd],
  [AS_HELP_STRING([--disable-simd], [build the portable C kernels only;
    --enable-simd=native: and those that this processor has])],
  [AS_CASE([$enable_simd], [yes|no|native], [],
    [AC_MSG_ERROR([--enable-simd=$enable_simd: it is yes, no or native])])],
  [enable_simd=yes])
gguf_isa_list=
GGUF_UNTRACKED
gguf_kern_cflags=$gguf_cv_untracked
GGUF_VECTOR_STACK
GGUF_UNSCHEDULED
dnl Kernels for 256 bits: AVX2, or on AArch64 two registers of NEON, which all
dnl processors have there. Those need shuffles by constants (gcc 12, clang).
AS_CASE([$host_cpu], [aarch64|arm64*],
  [GGUF_CHECK_ISA([KERN_256], [neon], [],
    [[#include <arm_neon.h>
]], [[uint32x4_t a = vdupq_n_u32(0);
      a = __builtin_shufflevector(a, a, 1, 0, 3, 2);
      return (int)vgetq_lane_u32(a, 0);]], [])],
  [GGUF_CHECK_ISA([KERN_256], [avx2], [-mavx2 -mfma -mf16c],
    [[#include <immintrin.h>
]], [[__m256 a = _mm256_setzero_ps(); a = _mm256_fmadd_ps(a, a, a);
      return (int)_mm256_cvtss_f32(a);]], [avx2])])
GGUF_ARM_FLAGS
dnl AArch64 beyond NEON. The operands are volatile: a compiler would compute the
dnl result of constants. 32-bit ARM has the header, too, and no kernels.
m4_pushdef([gguf_zero], [volatile int zero = 0;
      int32x4_t a = vdupq_n_s32(zero);
      const uint8x16_t b = vreinterpretq_u8_s32(a);])
m4_pushdef([gguf_arm], [[#ifndef __aarch64__
# error
#endif
#include <arm_neon.h>
]])
GGUF_CHECK_ISA([ARM_DOTPROD], [dotprod], [$gguf_arm_v82+dotprod],
  gguf_arm, gguf_zero [[
      a = vdotq_s32(a, vreinterpretq_s8_u8(b), vreinterpretq_s8_u8(b));
      return (int)vgetq_lane_s32(a, 0);]], [])
GGUF_CHECK_ISA([ARM_I8MM], [i8mm], [$gguf_arm_v82+dotprod+i8mm],
  gguf_arm, gguf_zero [[
      a = vusmmlaq_s32(a, b, vreinterpretq_s8_u8(b));
      return (int)vgetq_lane_s32(a, 0);]], [])
GGUF_CHECK_ISA([ARM_BF16], [bf16], [$gguf_arm_v82+bf16],
  gguf_arm, gguf_zero [[
      const bfloat16x8_t c = vreinterpretq_bf16_u8(b);
      const float32x4_t d = vbfmmlaq_f32(vcvtq_f32_s32(a), c, c);
      return (int)vgetq_lane_f32(d, 0);]], [])
GGUF_CHECK_ISA([ARM_SHA2], [sha2], [$gguf_arm_v8+crypto],
  gguf_arm, gguf_zero [[
      const uint32x4_t c = vreinterpretq_u32_s32(a);
      a = vreinterpretq_s32_u32(vsha256su0q_u32(c, c));
      return (int)vgetq_lane_s32(a, 0);]], [])
m4_popdef([gguf_arm])
m4_popdef([gguf_zero])
GGUF_CHECK_ISA([X86_AVX512], [avx512],
  [-mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl],
  [[#include <immintrin.h>
]], [[__m512 a = _mm512_setzero_ps(); a = _mm512_fmadd_ps(a, a, a);
      return (int)_mm512_cvtss_f32(a);]], [avx512bw])
dnl Kernels use these instructions by assembly (lib/kern/x86/dp.h): the
dnl assembler must know them, the compiler need not.
GGUF_CHECK_ISA([X86_AVXVNNI], [avxvnni], [-mavx2 -mfma -mf16c],
  [[#include <immintrin.h>
]], [[__m256i a = _mm256_setzero_si256();
      __asm__("%{vex%} vpdpwssd %1, %1, %0" : "+x"(a) : "x"(a));
      return _mm256_cvtsi256_si32(a);]], [avxvnni])
GGUF_CHECK_ISA([X86_VNNI512], [vnni512],
  [-mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl],
  [[#include <immintrin.h>
]], [[__m512i a = _mm512_setzero_si512();
      __asm__("vpdpwssd %1, %1, %0" : "+v"(a) : "v"(a));
      return _mm512_cvtsi512_si32(a);]], [avx512vnni])
GGUF_CHECK_ISA([X86_SHANI], [shani], [-mssse3 -msse4.1 -msha],
  [[#include <immintrin.h>
]], [[__m128i a = _mm_setzero_si128(); a = _mm_sha256msg1_epu32(a, a);
      return _mm_cvtsi128_si32(a);]], [sha])
GGUF_CHECK_ISA([X86_AVX512BF16], [avx512bf16],
  [-mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl],
  [[#include <immintrin.h>
]], [[__m512 a = _mm512_setzero_ps();
      __asm__("vdpbf16ps %1, %1, %0" : "+v"(a) : "v"(a));
      return (int)_mm512_cvtss_f32(a);]], [avx512bf16])
dnl Tiles need the kernels of VNNI512 and AVX512BF16, which every such processor
dnl has.
AS_IF([test "$gguf_isa_X86_VNNI512$gguf_isa_X86_AVX512BF16" = yesyes], [],
  [gguf_cv_isa_X86_AMX=no])
GGUF_CHECK_ISA([X86_AMX], [amx],
  [-mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl],
  [], [[__asm__("tilezero %tmm0");
      __asm__("tileloadd (%0,%0,1), %%tmm1" : : "r"((char *)0));
      __asm__("tdpbsud %tmm0, %tmm1, %tmm2");
      __asm__("tdpbf16ps %tmm0, %tmm1, %tmm2");]], [amx-int8])
])
