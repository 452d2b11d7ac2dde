// Package kernel is the part of the Linux interface that the datapath's parts
// share: network namespaces as files, route netlink, control groups, sysctls,
// and the question of what this kernel can do (Features).
//
// It is mechanism only. Nothing here knows what a lease or a link is.
//
// Sources: netlink(7), rtnetlink(7), namespaces(7), cgroups(7),
// include/uapi/linux/{netlink,rtnetlink,if_link,pkt_sched,pkt_cls}.h.
package kernel

import (
	"errors"

	"golang.org/x/sys/unix"
)

// ErrNotSupported says that this kernel or machine lacks a feature.
var ErrNotSupported = errors.New("not supported by this kernel")

// NotFound reports that an object to delete or to read is not there.
func NotFound(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV) ||
		errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EADDRNOTAVAIL) || errors.Is(err, unix.ENXIO)
}

// Exists reports that an object to create is there already.
func Exists(err error) bool { return errors.Is(err, unix.EEXIST) }
