package vxrouter

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
)

// The tenant tells daemons by vtysh to write files ("log file", "dump bgp").
// They find none of the host's: see kernel.Jail.

// ownKind is the kind of directory in which daemons write.
const ownKind = "vty"

// Bounds of what a router's daemons write together: sockets, pid files, logs and
// dumps. It is memory of the node's control group. A log that has filled it
// gets no further lines.
const (
	ownSize  = 4 << 20
	ownFiles = 128
)

// ownDir has what the daemons make. It belongs to the tenant, who may put
// anything there: nothing of it is believed, and root opens no file in it by
// following a link.
func (p *Part) ownDir(key string) string { return p.host.FRRDirs(key)[kernel.FRRRun] }

// makeOwn makes the directory unless it is there.
func (p *Part) makeOwn(key string) error {
	if p.hasOwn(key) {
		return nil
	}
	path := p.ownDir(key)
	if err := kernel.Unbind(path); err != nil {
		return err
	}
	owner, err := p.host.Owner(key)
	if err != nil {
		return err
	}
	target, err := kernel.Conceal(path)
	if err != nil {
		return err
	}
	if err := os.Mkdir(target, 0o700); err != nil {
		return err
	}
	data := fmt.Sprintf("size=%d,nr_inodes=%d,mode=0700", ownSize, ownFiles)
	if owner != kernel.NoOwner {
		data += fmt.Sprintf(",uid=%d", owner)
	}
	if err := unix.Mount("sublet", target, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, data); err != nil {
		return fmt.Errorf("mount the daemons' directory: %w", err)
	}
	return nil
}

// hasOwn says whether the directory is a file system of its own.
func (p *Part) hasOwn(key string) bool {
	var own, above unix.Stat_t
	return unix.Stat(p.ownDir(key), &own) == nil && unix.Stat(p.host.Dir(ownKind), &above) == nil && own.Dev != above.Dev
}

// jail is what a router's daemons, and vtysh, find.
func (p *Part) jail(key string) (*kernel.Jail, error) {
	dir := p.dir(key)
	jail := &kernel.Jail{Own: p.ownDir(key), OwnAt: kernel.FRRRun, Copies: map[string]string{
		"/etc/passwd": filepath.Join(dir, "passwd"), "/etc/group": filepath.Join(dir, "group"),
	}}
	for inside, outside := range map[string]string{kernel.FRREtc: dir, vtyshDir: filepath.Join(dir, filepath.Base(vtyshDir))} {
		entries, err := os.ReadDir(outside)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), ".conf") {
				jail.Copies[filepath.Join(inside, e.Name())] = filepath.Join(outside, e.Name())
			}
		}
	}
	return jail, nil
}
