// The limit to measure against: two TAP devices, each frame read from one and
// written to the other. argv: device, device, processor.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static int tap(const char *name)
{
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
	struct ifreq r = {0};

	strncpy(r.ifr_name, name, IFNAMSIZ - 1);
	r.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
	if (fd < 0 || ioctl(fd, TUNSETIFF, &r) ||
	    ioctl(fd, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN)) {
		perror(name);
		exit(1);
	}
	return fd;
}

int main(int argc, char **argv)
{
	static char b[65536 + 64];
	struct pollfd p[2] = {{.events = POLLIN}, {.events = POLLIN}};
	cpu_set_t set;

	if (argc != 4)
		return 2;
	CPU_ZERO(&set);
	CPU_SET(atoi(argv[3]), &set);
	sched_setaffinity(0, sizeof set, &set);
	p[0].fd = tap(argv[1]);
	p[1].fd = tap(argv[2]);
	puts("ready");
	fflush(stdout);
	for (;;) {
		poll(p, 2, -1);
		for (int i = 0; i < 2; i++)
			for (int k = 0; k < 64; k++) {
				ssize_t n = read(p[i].fd, b, sizeof b);

				if (n <= 0)
					break;
				if (write(p[1 - i].fd, b, n) < 0)
					continue;
			}
	}
}
