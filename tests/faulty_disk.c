/* A disk that refuses, below everything: loaded before the C library (LD_PRELOAD), it counts the calls that write below
 * one folder, and fails at one of them. Compiled and used by refusing.py. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum { NONE, REFUSED, SHORT };
static char folder[4096];
static long place, seen;
static int code, lasting; /* code 0: a write that writes half of what it is given, and says so */

void faulty_arm(const char *where, long at, int number, int stays) {
    snprintf(folder, sizeof folder, "%s", where);
    place = at, seen = 0, code = number, lasting = stays;
}

long faulty_seen(void) { return seen; }

static int hit(int writes) { /* lasting 1: what writes fails from then on; 2: what removes and renames does too */
    long now = __atomic_add_fetch(&seen, 1, __ATOMIC_SEQ_CST);
    if (now == place || (place && now > place && (lasting > 1 || (lasting && writes)))) {
        if (!code) return writes > 1 ? SHORT : NONE;
        errno = code;
        return REFUSED;
    }
    return NONE;
}

static int below(const char *path) { return folder[0] && path && !strncmp(path, folder, strlen(folder)); }

static int ours(int file) {
    char name[64], path[4096];
    if (!folder[0]) return 0;
    snprintf(name, sizeof name, "/proc/self/fd/%d", file);
    ssize_t length = readlink(name, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return below(path);
}

#define NEXT(type, name, ...) static type (*next)(__VA_ARGS__); if (!next) next = dlsym(RTLD_NEXT, #name)

#define OPEN(name)                                                                 \
    int name(const char *path, int flags, ...) {                                   \
        NEXT(int, name, const char *, int, ...);                                   \
        va_list more; va_start(more, flags);                                       \
        mode_t mode = va_arg(more, mode_t); va_end(more);                          \
        if (flags & (O_WRONLY | O_RDWR | O_CREAT) && below(path) && hit(1)) return -1; \
        return next(path, flags, mode);                                            \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                               \
    int name(int at, const char *path, int flags, ...) {                           \
        NEXT(int, name, int, const char *, int, ...);                              \
        va_list more; va_start(more, flags);                                       \
        mode_t mode = va_arg(more, mode_t); va_end(more);                          \
        if (flags & (O_WRONLY | O_RDWR | O_CREAT) && below(path) && hit(1)) return -1; \
        return next(at, path, flags, mode);                                        \
    }
OPENAT(openat)
OPENAT(openat64)

#define WRITE(name, types, ...) /* of a write that is refused, a part may be there all the same */ \
    ssize_t name types {                                                           \
        NEXT(ssize_t, name, int, const void *, size_t, off_t);                     \
        int what = ours(file) ? hit(2) : NONE, number = errno;                     \
        if (what != NONE && count > 1) count /= 2;                                 \
        if (what == REFUSED && count < 2) return -1;                               \
        ssize_t done = next(file, bytes, count, ##__VA_ARGS__);                    \
        if (what != REFUSED) return done;                                          \
        errno = number;                                                            \
        return -1;                                                                 \
    }
WRITE(write, (int file, const void *bytes, size_t count), 0)
WRITE(pwrite, (int file, const void *bytes, size_t count, off_t at), at)
WRITE(pwrite64, (int file, const void *bytes, size_t count, off_t at), at)

#define ONE(type, name, test, writes) /* a call whose one argument says which file */ \
    int name(type it) {                                                            \
        NEXT(int, name, type);                                                     \
        return test(it) && hit(writes) ? -1 : next(it);                            \
    }
ONE(const char *, unlink, below, 0)
ONE(const char *, rmdir, below, 0)

#define SYNC(name) /* of ours, not done: there is no power cut here, and disks are slow */ \
    int name(int file) {                                                           \
        NEXT(int, name, int);                                                      \
        return !ours(file) ? next(file) : hit(1) ? -1 : 0;                         \
    }
SYNC(fsync)
SYNC(fdatasync)

int ftruncate(int file, off_t length) {
    NEXT(int, ftruncate, int, off_t);
    return ours(file) && hit(1) ? -1 : next(file, length);
}

int ftruncate64(int file, off64_t length) {
    NEXT(int, ftruncate64, int, off64_t);
    return ours(file) && hit(1) ? -1 : next(file, length);
}

int rename(const char *from, const char *to) {
    NEXT(int, rename, const char *, const char *);
    return below(to) && hit(0) ? -1 : next(from, to);
}

int mkdir(const char *path, mode_t mode) {
    NEXT(int, mkdir, const char *, mode_t);
    return below(path) && hit(1) ? -1 : next(path, mode);
}

int msync(void *start, size_t length, int flags) { /* of a file that is mapped, which may be anybody's */
    NEXT(int, msync, void *, size_t, int);
    return folder[0] && hit(1) ? -1 : next(start, length, flags);
}
