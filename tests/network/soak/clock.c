/* The system's clock as a process sees it, ahead by the nanoseconds in a file: for `make soak`, by LD_PRELOAD. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *ahead;

__attribute__((constructor)) static void begin(void)
{
    const char *file = getenv("SOAK_CLOCK");
    int opened = file ? open(file, O_RDONLY | O_CLOEXEC) : -1;
    if (opened < 0)
        return;
    void *there = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, opened, 0);
    if (there != MAP_FAILED)
        ahead = there;
    close(opened);
}

int clock_gettime(clockid_t which, struct timespec *told)
{
    int failed = (int)syscall(SYS_clock_gettime, which, told);
    if (failed || which != CLOCK_REALTIME || !ahead)
        return failed;
    int64_t now = told->tv_sec * INT64_C(1000000000) + told->tv_nsec + *ahead;
    told->tv_sec = now / 1000000000;
    told->tv_nsec = now % 1000000000;
    return 0;
}

int gettimeofday(struct timeval *restrict told, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    told->tv_sec = now.tv_sec;
    told->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *told)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (told)
        *told = now.tv_sec;
    return now.tv_sec;
}
