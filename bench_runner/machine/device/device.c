/* Time reads from the device that a file is on.
 *
 * Several reads are in flight at a time, and are collected as they complete. This uses the system calls of Linux AIO,
 * which need no library and no root privileges. Nothing here depends on formats or decides what is measured. */

#include <errno.h>
#include <stdint.h>
#include <time.h>

#ifdef __linux__
#include <linux/aio_abi.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST_IN_FLIGHT 1024

#define EXPORTED __attribute__((visibility("default")))

static uint64_t nanoseconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void prepare(struct iocb *request, int file, char *memory, uint64_t offset, uint32_t size, uint64_t slot) {
    *request = (struct iocb){0};
    request->aio_data = slot;
    request->aio_lio_opcode = IOCB_CMD_PREAD;
    request->aio_fildes = (uint32_t)file;
    request->aio_buf = (uint64_t)(uintptr_t)memory;
    request->aio_nbytes = size;
    request->aio_offset = (int64_t)offset;
}

/* Read `size` bytes at each of `count` offsets, `depth` at a time, into `memory` (depth x size bytes), until all are
 * read or `limit_ns` have passed. Returns the number of complete reads, or a negative error number. */
EXPORTED int64_t fb_reads(int file, const uint64_t *offsets, uint64_t count, uint32_t size, uint32_t depth,
                          uint64_t limit_ns, char *memory, uint64_t *wall_ns, uint64_t *cpu_ns) {
    struct iocb requests[MOST_IN_FLIGHT], *pending[MOST_IN_FLIGHT];
    struct io_event events[MOST_IN_FLIGHT];
    aio_context_t context = 0;
    if (depth == 0 || depth > MOST_IN_FLIGHT) return -EINVAL;
    if (syscall(SYS_io_setup, depth, &context) < 0) return -errno;
    int64_t result = 0;
    uint64_t cpu_started = nanoseconds(CLOCK_THREAD_CPUTIME_ID), started = nanoseconds(CLOCK_MONOTONIC);
    uint64_t next = 0, in_flight = 0, done = 0;
    long ready = 0;
    for (uint32_t slot = 0; slot < depth && next < count; slot++, next++) {
        prepare(&requests[slot], file, memory + (uint64_t)slot * size, offsets[next], size, slot);
        pending[ready++] = &requests[slot];
    }
    while (ready > 0 || in_flight > 0) {
        long submitted = 0;
        while (submitted < ready) {
            /* Submit requests one by one. If one call submits several, the kernel holds back the first until it has
             * seen the last, and the device is idle meanwhile. */
            long taken = syscall(SYS_io_submit, context, 1L, pending + submitted);
            if (taken < 0) {
                if (errno == EAGAIN && in_flight > 0) break;
                result = -errno;
                goto end;
            }
            submitted += taken;
            in_flight += (uint64_t)taken;
        }
        /* Reads that the kernel did not accept are submitted again after others have completed. */
        for (long each = submitted; each < ready; each++) pending[each - submitted] = pending[each];
        ready -= submitted;
        long found = syscall(SYS_io_getevents, context, 1L, (long)depth, events, NULL);
        if (found < 0) {
            if (errno == EINTR) continue;
            result = -errno;
            goto end;
        }
        int over = nanoseconds(CLOCK_MONOTONIC) - started > limit_ns;
        for (long each = 0; each < found; each++) {
            in_flight--;
            if (events[each].res < 0) {
                result = events[each].res;
                goto end;
            }
            if ((uint64_t)events[each].res != size) {
                result = -EIO;
                goto end;
            }
            done++;
            if (next < count && !over) {
                uint64_t slot = events[each].data;
                prepare(&requests[slot], file, memory + slot * size, offsets[next++], size, slot);
                pending[ready++] = &requests[slot];
            }
        }
    }
    result = (int64_t)done;
end:
    *wall_ns = nanoseconds(CLOCK_MONOTONIC) - started;
    *cpu_ns = nanoseconds(CLOCK_THREAD_CPUTIME_ID) - cpu_started;
    /* Wait for reads in flight, because they write to the caller's memory. */
    syscall(SYS_io_destroy, context);
    return result;
}

/* Like fb_reads, but for a file in the page cache, with one read after the other. */
EXPORTED int64_t fb_cached_reads(int file, const uint64_t *offsets, uint64_t count, uint32_t size, uint64_t limit_ns,
                                 char *memory, uint64_t *wall_ns, uint64_t *cpu_ns) {
    uint64_t cpu_started = nanoseconds(CLOCK_THREAD_CPUTIME_ID), started = nanoseconds(CLOCK_MONOTONIC);
    int64_t done = 0, result = 0;
    for (uint64_t next = 0; next < count; next++) {
        ssize_t got = pread(file, memory, size, (off_t)offsets[next]);
        if (got != (ssize_t)size) {
            result = got < 0 ? -errno : -EIO;
            break;
        }
        done++;
        /* Check the limit only every 16 reads, because reading the clock takes a tenth of the time of a small read. */
        if (done % 16 == 0 && nanoseconds(CLOCK_MONOTONIC) - started > limit_ns) break;
    }
    *wall_ns = nanoseconds(CLOCK_MONOTONIC) - started;
    *cpu_ns = nanoseconds(CLOCK_THREAD_CPUTIME_ID) - cpu_started;
    return result < 0 ? result : done;
}

#endif
