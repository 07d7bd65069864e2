/* slowsync: preloaded into a server, makes every fsync and fdatasync take SLOWSYNC_MS longer, like an SD card. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

static int slowly(const char *name, int fd) {
    const char *setting = getenv("SLOWSYNC_MS");
    long microseconds = setting ? (long)(atof(setting) * 1000) : 0;
    struct timespec pause = {microseconds / 1000000, microseconds % 1000000 * 1000};
    nanosleep(&pause, NULL);
    return ((int (*)(int))dlsym(RTLD_NEXT, name))(fd);
}

int fsync(int fd) { return slowly("fsync", fd); }
int fdatasync(int fd) { return slowly("fdatasync", fd); }
