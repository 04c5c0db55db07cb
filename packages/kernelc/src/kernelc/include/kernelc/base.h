/* What every header begins with: words for functions, copies and branches, and the codes of failures.
   Plain C without the STL: the same text is read by the native core, g++, clang and nvcc. */
#ifndef KERNELC_BASE_H
#define KERNELC_BASE_H

#include <stdint.h>
#if defined(__CUDACC__) || !defined(__GNUC__)
#include <string.h>
#define KC_COPY memcpy
#else
#define KC_COPY __builtin_memcpy /* reading string.h takes longer than a small kernel */
#endif
#ifndef __cplusplus
#include <stdbool.h>
#endif

#ifdef __CUDACC__
#define KC_FN static __device__ inline
#else
#define KC_FN static inline
#endif
#if defined(__GNUC__) || defined(__clang__)
#define KC_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#else
#define KC_UNLIKELY(condition) (condition)
#endif

/* Codes of failures; a and b are the two numbers that the message shows. */
enum {
    KC_ASSERT = 1,
    KC_INDEX = 2,         /* a = index, b = bound */
    KC_NAN = 3,
    KC_DIVISION = 4,
    KC_UNINITIALISED = 5,
    KC_RACE = 6,
    KC_TAPE_FULL = 7,     /* a = bytes needed, b = limit; the native core does not know the site: -1 */
    KC_SINGULAR = 8,
    KC_RANGE_STEP = 9,
    KC_INTERRUPTED = 10   /* by a signal: Python has the exception already */
};

#endif
