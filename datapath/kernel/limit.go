package kernel

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// CPU periods of the quota, in microseconds: short for smoothness, long for
// shares too small for the kernel's least quota of one millisecond.
const (
	cpuPeriod     = 100_000
	cpuLongPeriod = 1_000_000
	cpuLeast      = 10 // thousandths of a core below which the period is long
)

// SetCPU limits the group to thousandths of one core; 0 lifts the limit. On
// version 2 it sets the group's weight too.
func (g Group) SetCPU(milli int64) error {
	dir, version, err := g.limited("cpu", milli != 0)
	if err != nil || dir == "" {
		return err
	}
	period := int64(cpuPeriod)
	if milli < cpuLeast {
		period = cpuLongPeriod
	}
	quota := milli * period / 1000
	if version == 2 {
		if err := writeIfThere(filepath.Join(dir, "cpu.weight"), strconv.FormatInt(weight(milli), 10)); err != nil {
			return err
		}
		return write(filepath.Join(dir, "cpu.max"), fmt.Sprintf("%s %d", orMax(quota), period))
	}
	return setQuota(dir, period, quota)
}

// SetQuota limits the group to so much processor time in each period, in whole
// microseconds. Short periods make short queues; the kernel takes quotas from a
// millisecond on.
func (g Group) SetQuota(quota, period time.Duration) error {
	dir, version, err := g.limited("cpu", true)
	if err != nil {
		return err
	}
	if version == 2 {
		return write(filepath.Join(dir, "cpu.max"), fmt.Sprintf("%d %d", quota.Microseconds(), period.Microseconds()))
	}
	return setQuota(dir, period.Microseconds(), quota.Microseconds())
}

// Favour gives the group the most weight that there is among its siblings, for
// measurements that other work on the machine should not change.
func (g Group) Favour() error {
	dir, version, err := g.limited("cpu", true)
	if err != nil {
		return err
	}
	if version == 2 {
		return write(filepath.Join(dir, "cpu.weight"), "10000")
	}
	return write(filepath.Join(dir, "cpu.shares"), "262144")
}

// weight is the group's share of the processors under contention: as its
// limit, a core being the kernel's default of 100. Without a limit it is the
// least, so that such groups get what the others leave over.
func weight(milli int64) int64 { return min(max(milli/10, 1), 10_000) }

// setQuota writes period and quota so that no order of old and new values
// is refused: the quota is lifted in between.
func setQuota(dir string, period, quota int64) error {
	file := filepath.Join(dir, "cpu.cfs_quota_us")
	if quota == 0 {
		return write(file, "-1")
	}
	if old, _ := readNumber(filepath.Join(dir, "cpu.cfs_period_us")); old != period {
		if err := write(file, "-1"); err != nil {
			return err
		}
		if err := write(filepath.Join(dir, "cpu.cfs_period_us"), strconv.FormatInt(period, 10)); err != nil {
			return err
		}
	}
	return write(file, strconv.FormatInt(quota, 10))
}

// CPU reads the limit in thousandths of one core; 0: none.
func (g Group) CPU() int64 {
	quota, period := g.Quota()
	if period == 0 {
		return 0
	}
	return int64(1000 * quota / period)
}

// Quota reads the processor time that the group has in each period; zeros: all of it.
func (g Group) Quota() (time.Duration, time.Duration) {
	mount, version := g.cgroups.Controller("cpu")
	dir := filepath.Join(mount, g.path)
	var quota, period int64 // microseconds
	switch version {
	case 1:
		quota, _ = readNumber(filepath.Join(dir, "cpu.cfs_quota_us"))
		period, _ = readNumber(filepath.Join(dir, "cpu.cfs_period_us"))
	case 2:
		data, _ := os.ReadFile(filepath.Join(dir, "cpu.max"))
		fmt.Sscan(string(data), &quota, &period) // "max 100000" leaves zeros
	}
	if quota <= 0 || period <= 0 {
		return 0, 0
	}
	return time.Duration(quota) * time.Microsecond, time.Duration(period) * time.Microsecond
}

// noMemoryLimit is what version 1 shows without a limit: half of the address
// space in whole pages; no machine has that much.
const noMemoryLimit = 1 << 60

// What sockets of TCP and UDP hold is in the limit itself on version 2. Version 1 has a
// limit beside it, of half as much and never less than leastSockets. It knows sockets
// that are made while it is there.
const (
	socketShare  = 2
	leastSockets = 16 << 20
	socketLimit  = "memory.kmem.tcp.limit_in_bytes"
)

// socketMost is that limit beside one of so many bytes, in whole pages.
func socketMost(bytes int64) int64 {
	page := int64(os.Getpagesize())
	return max(bytes/socketShare, leastSockets) / page * page
}

// SetMemory limits the group's memory, swap included, in bytes of whole
// pages; 0 lifts the limit.
func (g Group) SetMemory(bytes int64) error {
	dir, version, err := g.limited("memory", bytes != 0)
	if err != nil || dir == "" {
		return err
	}
	if version == 2 {
		if err := write(filepath.Join(dir, "memory.max"), orMax(bytes)); err != nil {
			return err
		}
		return writeIfThere(filepath.Join(dir, "memory.swap.max"), "0")
	}
	value, sockets := "-1", "-1"
	if bytes != 0 {
		value, sockets = strconv.FormatInt(bytes, 10), strconv.FormatInt(socketMost(bytes), 10)
	}
	if err := writeIfThere(filepath.Join(dir, socketLimit), sockets); err != nil {
		return err
	}
	both := filepath.Join(dir, "memory.memsw.limit_in_bytes")
	if err := writeIfThere(both, "-1"); err != nil { // must never be the smaller of the two
		return err
	}
	if err := write(filepath.Join(dir, "memory.limit_in_bytes"), value); err != nil {
		return err
	}
	return writeIfThere(both, value)
}

// Memory reads the limit in bytes; 0: none, or none of what sockets hold.
func (g Group) Memory() int64 {
	mount, version := g.cgroups.Controller("memory")
	name := "memory.max"
	if version == 1 {
		name = "memory.limit_in_bytes"
	}
	bytes, err := readNumber(filepath.Join(mount, g.path, name))
	if version == 0 || err != nil || bytes >= noMemoryLimit {
		return 0
	}
	if sockets, err := readNumber(filepath.Join(mount, g.path, socketLimit)); err == nil && sockets != socketMost(bytes) {
		return 0
	}
	return bytes
}

// MemoryFiles are those of a group that tell of its memory.
type MemoryFiles struct {
	Limit  string `json:"limit"`
	Events string `json:"events"`
}

// MemoryFiles names them; empty: nobody limits memory here.
func (g Group) MemoryFiles() MemoryFiles {
	mount, version := g.cgroups.Controller("memory")
	dir := filepath.Join(mount, g.path)
	switch version {
	case 1:
		return MemoryFiles{filepath.Join(dir, "memory.limit_in_bytes"), filepath.Join(dir, "memory.oom_control")}
	case 2:
		return MemoryFiles{filepath.Join(dir, "memory.max"), filepath.Join(dir, "memory.events")}
	}
	return MemoryFiles{}
}

// Kills counts the processes that the kernel has ended because memory was out; 0
// also where it cannot be read.
func (m MemoryFiles) Kills() int64 {
	n, _ := statOf(m.Events, "oom_kill")
	return n
}

// Most is the limit in bytes; 0: none.
func (m MemoryFiles) Most() int64 {
	n, err := readNumber(m.Limit)
	if err != nil || n >= noMemoryLimit {
		return 0
	}
	return n
}

// SetProcesses limits how many processes and threads the group may have, if
// this machine can.
func (g Group) SetProcesses(most int) error {
	mount, version := g.cgroups.Controller("pids")
	if version == 0 {
		return nil
	}
	return write(filepath.Join(mount, g.path, "pids.max"), strconv.Itoa(most))
}

// MostProcesses reads that limit; 0: none, or this machine has no such limits.
func (g Group) MostProcesses() int {
	mount, version := g.cgroups.Controller("pids")
	most, err := readNumber(filepath.Join(mount, g.path, "pids.max"))
	if version == 0 || err != nil { // "max" is no number
		return 0
	}
	return int(most)
}

// RefusedProcesses is how many processes and threads that limit kept from starting.
func (g Group) RefusedProcesses() int64 {
	mount, version := g.cgroups.Controller("pids")
	if version == 0 {
		return 0
	}
	n, _ := statOf(filepath.Join(mount, g.path, "pids.events"), "max")
	return n
}

// limited returns the group's directory for a controller, made if a limit is
// wanted; "" when there is nothing to lift.
func (g Group) limited(controller string, wanted bool) (string, int, error) {
	mount, version := g.cgroups.Controller(controller)
	dir := filepath.Join(mount, g.path)
	if !wanted {
		if _, err := os.Stat(dir); version == 0 || err != nil {
			return "", version, nil
		}
		return dir, version, nil
	}
	if version == 0 {
		return "", 0, fmt.Errorf("limit %s of %s: no cgroup controller %q is mounted: %w", controller, g.path, controller, ErrNotSupported)
	}
	return dir, version, g.makeIn(mount)
}

func orMax(limit int64) string {
	if limit == 0 {
		return "max"
	}
	return strconv.FormatInt(limit, 10)
}

func writeIfThere(path, value string) error {
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	return write(path, value)
}

func readNumber(path string) (int64, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
}
