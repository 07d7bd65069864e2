/* The recorder: one total order of what a server asked of the disk and what it promised over HTTP.
 *
 * Loaded with LD_PRELOAD. Every create, write, truncate, sync, unlink and rename of a file under
 * $RECORDER_DIR, every HTTP request read and every HTTP answer written goes into $RECORDER_TRACE, in
 * the order in which it happened. recorder.py reads the trace; powercut.py rebuilds from it the disks
 * that a power cut could have left behind.
 *
 * The order errs on the strict side: a write is noted once it is done, a sync twice (asked, returned),
 * and an answer before its first byte leaves. So a sync covers the writes noted before it was asked,
 * and an answer may rely on the syncs noted before it.
 *
 * $RECORDER_CONTROL is a page shared with the test (struct control): counters to read, and faults that
 * may be switched while the server runs. It outlives a server that is killed and started again.
 *
 * Not recorded: "-shm" files (SQLite maps them and rebuilds them after a crash), writes through
 * mmap, and file names relative to an open directory. Paths must be absolute and free of symlinks.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef __LP64__
#error "file offsets are passed to the kernel in one register here: 64-bit only"
#endif

enum { FD_MAX = 4096, NAME_MAX_BYTES = 96, HTTP_MAX_BYTES = 1024 };

enum kind { CREATE = 1, WRITE, TRUNCATE, SYNC_ASKED, SYNC_DONE, SYNC_FAILED, UNLINK, RENAME,
            REQUEST, ANSWER };

/* As recorder.py writes it. A fault hits the calls `first`, `first` + `step`, ... `last`, counted from 1;
 * `error` 0 is no fault. */
struct fault { int64_t first, last, step, error; };
struct control {
    int64_t syncs, writes;         /* calls seen so far */
    int64_t injected;              /* and how many of them a fault hit */
    struct fault sync, write;
    int64_t sync_delay_us;         /* a slow disk */
    int64_t sync_lies;             /* a disk that says it synced, and did not */
    int64_t only;                  /* which files faults hit: 0 all, 1 the WAL, 2 all but the WAL */
};

static struct control own_control, *control = &own_control;
static const char *directory;
static size_t directory_bytes;
static int trace = -1;
static pid_t owner;
static pthread_mutex_t order = PTHREAD_MUTEX_INITIALIZER;
static char names[FD_MAX][NAME_MAX_BYTES]; /* of the files that are open and watched, by descriptor */

static void die(const char *why) {
    dprintf(2, "recorder: %s (%s)\n", why, strerror(errno));
    abort();
}

__attribute__((constructor)) static void begin(void) {
    const char *trace_path = getenv("RECORDER_TRACE"), *control_path = getenv("RECORDER_CONTROL");
    directory = getenv("RECORDER_DIR");
    if (!directory || !trace_path) return;
    directory_bytes = strlen(directory);
    owner = getpid();
    trace = syscall(SYS_openat, AT_FDCWD, trace_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (trace < 0) die("cannot open the trace");
    if (!control_path) return;
    int fd = syscall(SYS_openat, AT_FDCWD, control_path, O_RDWR | O_CLOEXEC);
    control = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd < 0 || control == MAP_FAILED) die("cannot map the control page");
    syscall(SYS_close, fd);
}

/* Appends one record; leaves errno as it was. Called with `order` held. */
static void record(enum kind kind, const char *name, uint64_t number, const void *bytes, uint32_t length) {
    int before = errno;
    struct __attribute__((packed)) { uint8_t kind; uint16_t name_bytes; uint32_t length; uint64_t number; }
        head = {kind, strlen(name), length, number};
    struct iovec parts[] = {{&head, sizeof head}, {(void *)name, head.name_bytes}, {(void *)bytes, length}};
    ssize_t whole = sizeof head + head.name_bytes + length;
    if (syscall(SYS_writev, trace, parts, 3) != whole) die("cannot write the trace");
    errno = before;
}

static void record_now(enum kind kind, const char *name, uint64_t number, const void *bytes, uint32_t length) {
    pthread_mutex_lock(&order);
    record(kind, name, number, bytes, length);
    pthread_mutex_unlock(&order);
}

static int ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

/* The name inside the watched directory ("." is the directory itself), or NULL for any other path. */
static const char *inside(const char *path) {
    if (trace < 0 || strncmp(path, directory, directory_bytes)) return NULL;
    const char *rest = path + directory_bytes;
    if (*rest && *rest != '/') return NULL;
    while (*rest == '/') rest++;
    if (ends_with(rest, "-shm")) return NULL;
    if (strlen(rest) >= NAME_MAX_BYTES) die("a file name is too long");
    return *rest ? rest : ".";
}

static const char *watched(int fd) {
    return fd >= 0 && fd < FD_MAX && names[fd][0] ? names[fd] : NULL;
}

static int injected(const struct fault *fault, int64_t call, const char *name) {
    int is_wal = ends_with(name, "-wal");
    if ((control->only == 1 && !is_wal) || (control->only == 2 && is_wal)) return 0;
    if (call < fault->first || call > fault->last) return 0;
    if (!fault->error || (call - fault->first) % (fault->step ? fault->step : 1)) return 0;
    control->injected++;
    return fault->error;
}

/* ---- files: opening, closing, names ---- */

static int open_watched(int at, const char *path, int flags, mode_t mode) {
    const char *name = inside(path);
    if (!name) return syscall(SYS_openat, at, path, flags, mode);
    pthread_mutex_lock(&order);
    int is_new = (flags & O_CREAT) && access(path, F_OK);
    int fd = syscall(SYS_openat, at, path, flags, mode);
    if (fd >= FD_MAX) die("too many open files");
    if (fd >= 0) {
        strcpy(names[fd], name);
        if (is_new) record(CREATE, name, 0, "", 0);
        else if (flags & O_TRUNC) record(TRUNCATE, name, 0, "", 0);
    }
    pthread_mutex_unlock(&order);
    return fd;
}

#define OPEN(at)                                                  \
    mode_t mode = 0;                                              \
    if (flags & (O_CREAT | O_TMPFILE)) {                          \
        va_list rest;                                             \
        va_start(rest, flags);                                    \
        mode = va_arg(rest, int);                                 \
        va_end(rest);                                             \
    }                                                             \
    return open_watched(at, path, flags, mode)

int open(const char *path, int flags, ...) { OPEN(AT_FDCWD); }
int open64(const char *path, int flags, ...) { OPEN(AT_FDCWD); }
int openat(int at, const char *path, int flags, ...) { OPEN(at); }
int openat64(int at, const char *path, int flags, ...) { OPEN(at); }

/* A child between vfork and exec shares our memory: what it closes is still open here. */
int close(int fd) {
    if (watched(fd) && syscall(SYS_getpid) == owner) {
        pthread_mutex_lock(&order);
        names[fd][0] = 0;
        pthread_mutex_unlock(&order);
    }
    return syscall(SYS_close, fd);
}

static int unlink_watched(int at, const char *path, int flags) {
    const char *name = inside(path);
    if (!name) return syscall(SYS_unlinkat, at, path, flags);
    pthread_mutex_lock(&order);
    int result = syscall(SYS_unlinkat, at, path, flags);
    if (!result) record(UNLINK, name, 0, "", 0);
    pthread_mutex_unlock(&order);
    return result;
}

int unlink(const char *path) { return unlink_watched(AT_FDCWD, path, 0); }
int unlinkat(int at, const char *path, int flags) { return unlink_watched(at, path, flags); }

static int rename_watched(int from_at, const char *from, int to_at, const char *to, unsigned flags) {
    const char *old = inside(from), *new = inside(to);
    if (!old || !new) return syscall(SYS_renameat2, from_at, from, to_at, to, flags);
    pthread_mutex_lock(&order);
    int result = syscall(SYS_renameat2, from_at, from, to_at, to, flags);
    if (!result) {
        record(RENAME, old, 0, new, strlen(new));
        for (int fd = 0; fd < FD_MAX; fd++)
            if (!strcmp(names[fd], old)) strcpy(names[fd], new);
    }
    pthread_mutex_unlock(&order);
    return result;
}

int rename(const char *from, const char *to) { return rename_watched(AT_FDCWD, from, AT_FDCWD, to, 0); }
int renameat(int from_at, const char *from, int to_at, const char *to) {
    return rename_watched(from_at, from, to_at, to, 0);
}
int renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags) {
    return rename_watched(from_at, from, to_at, to, flags);
}

/* ---- files: writing and syncing ---- */

/* `offset` -1 writes at the file's own position. */
static ssize_t write_watched(int fd, const void *bytes, size_t length, off_t offset) {
    pthread_mutex_lock(&order);
    ssize_t result = -1;
    int error = injected(&control->write, ++control->writes, names[fd]);
    if (error) {
        errno = error;
    } else if (offset < 0) {
        result = syscall(SYS_write, fd, bytes, length);
        if (result > 0) offset = lseek(fd, 0, SEEK_CUR) - result;
    } else {
        result = syscall(SYS_pwrite64, fd, bytes, length, offset);
    }
    if (result > 0) record(WRITE, names[fd], offset, bytes, result);
    pthread_mutex_unlock(&order);
    return result;
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset) {
    if (watched(fd)) return write_watched(fd, bytes, length, offset);
    return syscall(SYS_pwrite64, fd, bytes, length, offset);
}
ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t offset) {
    return pwrite(fd, bytes, length, offset);
}

int ftruncate(int fd, off_t size) {
    if (!watched(fd)) return syscall(SYS_ftruncate, fd, size);
    pthread_mutex_lock(&order);
    int result = syscall(SYS_ftruncate, fd, size);
    if (!result) record(TRUNCATE, names[fd], size, "", 0);
    pthread_mutex_unlock(&order);
    return result;
}
int ftruncate64(int fd, off64_t size) { return ftruncate(fd, size); }

static int sync_watched(int fd, long number) {
    if (!watched(fd)) return syscall(number, fd);
    char name[NAME_MAX_BYTES];
    pthread_mutex_lock(&order);
    strcpy(name, names[fd]);
    int64_t call = ++control->syncs;
    int error = injected(&control->sync, call, name), lies = control->sync_lies;
    if (!lies) record(SYNC_ASKED, name, call, "", 0);
    pthread_mutex_unlock(&order);
    if (control->sync_delay_us) usleep(control->sync_delay_us);
    if (lies) return 0;
    if (!error && syscall(number, fd)) error = errno;
    record_now(error ? SYNC_FAILED : SYNC_DONE, name, call, "", 0);
    errno = error;
    return error ? -1 : 0;
}

int fsync(int fd) { return sync_watched(fd, SYS_fsync); }
int fdatasync(int fd) { return sync_watched(fd, SYS_fdatasync); }

/* ---- HTTP: the heads of requests as they are read, and of answers as they are written ---- */

static int begins(const void *bytes, size_t length, const char *word) {
    return length > strlen(word) && !memcmp(bytes, word, strlen(word));
}

static ssize_t note_request(int fd, const void *bytes, ssize_t length) {
    if (trace < 0 || length <= 0) return length;
    if (begins(bytes, length, "POST ") || begins(bytes, length, "HEAD ") || begins(bytes, length, "GET "))
        record_now(REQUEST, "", fd, bytes, length < HTTP_MAX_BYTES ? length : HTTP_MAX_BYTES);
    return length;
}

static void note_answer(int fd, const void *bytes, size_t length) {
    if (trace >= 0 && begins(bytes, length, "HTTP/1."))
        record_now(ANSWER, "", fd, bytes, length < HTTP_MAX_BYTES ? length : HTTP_MAX_BYTES);
}

ssize_t read(int fd, void *bytes, size_t length) {
    ssize_t result = syscall(SYS_read, fd, bytes, length);
    return watched(fd) ? result : note_request(fd, bytes, result);
}
ssize_t recvfrom(int fd, void *bytes, size_t length, int flags, struct sockaddr *from, socklen_t *from_bytes) {
    return note_request(fd, bytes, syscall(SYS_recvfrom, fd, bytes, length, flags, from, from_bytes));
}
ssize_t recv(int fd, void *bytes, size_t length, int flags) {
    return recvfrom(fd, bytes, length, flags, NULL, NULL);
}

ssize_t write(int fd, const void *bytes, size_t length) {
    if (watched(fd)) return write_watched(fd, bytes, length, -1);
    note_answer(fd, bytes, length);
    return syscall(SYS_write, fd, bytes, length);
}
ssize_t writev(int fd, const struct iovec *parts, int count) {
    if (watched(fd)) die("a watched file is written in a way that is not recorded");
    if (count) note_answer(fd, parts[0].iov_base, parts[0].iov_len);
    return syscall(SYS_writev, fd, parts, count);
}
ssize_t send(int fd, const void *bytes, size_t length, int flags) {
    note_answer(fd, bytes, length);
    return syscall(SYS_sendto, fd, bytes, length, flags, NULL, 0);
}
ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
    if (message->msg_iovlen) note_answer(fd, message->msg_iov[0].iov_base, message->msg_iov[0].iov_len);
    return syscall(SYS_sendmsg, fd, message, flags);
}
