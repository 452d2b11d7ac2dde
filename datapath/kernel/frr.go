package kernel

import (
	"os"
	"path/filepath"
)

// FRRDaemons are those of FRR that OSPF takes, in the order in which they
// start: the second speaks to the first.
var FRRDaemons = []string{"zebra", "ospfd"}

// FRRRouters are those that virtual routers may run, in the order in which they
// start.
var FRRRouters = []string{"zebra", "ospfd", "ospf6d", "bgpd", "isisd", "ripd", "ripngd", "bfdd", "staticd"}

// Where programs of FRR look for their configuration and for sockets.
const (
	FRREtc = "/etc/frr"
	FRRRun = "/run/frr"
)

// FRRDirs are the directories that a router's node sees there, if they exist:
// what its daemons were told, and what they make, which is the tenant's.
func (h *Host) FRRDirs(key string) map[string]string {
	dir := filepath.Join(h.Dir("frr"), key)
	return map[string]string{FRREtc: filepath.Join(dir, "etc"), FRRRun: filepath.Join(h.Dir("vty"), key)}
}

// FRR is a daemon's program, where Debian's package has it.
func FRR(daemon string) string { return filepath.Join("/usr/lib/frr", daemon) }

// VTYSH is the program by which daemons are told what several of them read.
const VTYSH = "/usr/bin/vtysh"

// MissingFRR is the first daemon that is not installed; "": none.
func MissingFRR() string {
	for _, d := range FRRDaemons {
		if _, err := os.Stat(FRR(d)); err != nil {
			return d
		}
	}
	return ""
}

// FRRUser is the text of a user file to show to FRR, which looks up its user.
const FRRUser = "root:x:0:0:root:/:/bin/sh\n"

// FRRGroup is the text of a group file to show to FRR, which wants its user in
// the group frrvty: root is.
const FRRGroup = "root:x:0:\nfrrvty:x:0:root\n"

// FRRArgv starts a daemon with DAEMON.conf from one directory and everything
// that it makes (DAEMON.vty, .pid, .log, zserv.api) in another.
func FRRArgv(daemon, dir, own, logLevel string) []string {
	return []string{
		FRR(daemon), "--user", "root", "--group", "root", "--vty_port", "0", "--vty_socket", own,
		"--socket", filepath.Join(own, "zserv.api"), "--pid_file", filepath.Join(own, daemon+".pid"),
		"--config_file", filepath.Join(dir, daemon+".conf"),
		"--log", "file:" + filepath.Join(own, daemon+".log"), "--log-level", logLevel,
	}
}
