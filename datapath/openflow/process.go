package openflow

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sublet/datapath/kernel"
	"sublet/openflow/channel"
	"sublet/openflow/of13"
	"sublet/plan"
	"sublet/vnet"
)

// askTime is in which a process answers.
const askTime = 10 * time.Second

// process is a switch as its process sees it.
type process struct{ plan.Switch }

// arguments are what the process is started with, in its directory: they show to
// every user of the machine, so no name of a tenant's is among them.
func (s process) arguments() []string {
	o := s.OpenFlow
	if o == nil {
		return nil
	}
	datapath, fail, miss := o.Words()
	list := []string{
		"openflow", "run", "--quiet", "--confine", "--keep", "--ports", "eth*", "--ports-in", "ports", "--socket", "socket",
		"--dpid", strconv.FormatUint(o.DatapathID, 16), "--datapath", datapath, "--fail", fail, "--miss", miss,
		"--tables", strconv.Itoa(o.Tables), "--entries", strconv.Itoa(o.Entries), "--groups", strconv.Itoa(o.Groups), "--meters", strconv.Itoa(o.Meters),
		"--packet-ins", strconv.Itoa(o.PacketIns), "--heap", strconv.FormatInt(heapOf(int64(o.Memory)), 10),
	}
	if len(o.Slices) > 0 {
		list = append(list, "--slices", slicesFile)
	} else {
		list = append(list, "--controller", strings.Join(o.Controllers, ","))
	}
	if o.MeterHold > 0 {
		list = append(list, "--meter-hold", o.MeterHold.String())
	}
	if o.Auxiliary > 0 {
		list = append(list, "--auxiliary", strconv.Itoa(o.Auxiliary))
	}
	if b := o.InBand; b != nil {
		list = append(list, "--in-band", "--local", vnet.LocalInterface)
		if len(b.Gateways) > 0 {
			list = append(list, "--gateway", joined(b.Gateways))
		}
		list = append(list, "--in-band-ports", cmp.Or(joined(b.Ports), "none"))
	}
	if o.TLS != nil {
		list = append(list, "--key", keyFile, "--cert", certFile, "--ca", caFile, "--any-name")
	}
	return list
}

// besideHeap is what a process takes beside its heap: 29 MiB of the kernel's for flows and
// sockets, stacks, code, and 20 MiB that a heap is above its limit while it is swept.
const besideHeap = 90 << 20

// heapOf is the part of its memory that a process's heap is to stay in.
func heapOf(memory int64) int64 { return min(memory*3/4, max(memory/2, memory-besideHeap)) }

// joined writes a list as flags have it.
func joined[T any](list []T) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(list), "[]"), " ", ",")
}

// Files of a switch's directory with what it shows to controllers over TLS.
const keyFile, certFile, caFile = "key.pem", "cert.pem", "ca.pem"

// slicesFile is the file of its directory with its slices.
const slicesFile = "slices.yaml"

// writeSlices writes it.
func (p *Part) writeSlices(s plan.Switch) error {
	if len(s.OpenFlow.Slices) == 0 {
		return nil
	}
	text, err := json.Marshal(map[string]any{"slices": s.OpenFlow.Slices})
	if err != nil {
		return err
	}
	return p.write(s.Key(), slicesFile, text)
}

// resliced says whether a switch's slices are others than its process knows.
func (p *Part) resliced(s plan.Switch) bool {
	return !reflect.DeepEqual(s.OpenFlow.Slices, p.written(s.Key()).OpenFlow.Slices)
}

// reslice has a process that runs know its slices, if it knows others.
func (p *Part) reslice(ctx context.Context, s plan.Switch) error {
	if !p.resliced(s) {
		return nil
	}
	if err := p.writeSlices(s); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	c, done, err := p.ask(ctx, s.Key())
	if err != nil {
		return err
	}
	defer done()
	if err := c.Reslice(); err != nil {
		return fmt.Errorf("change its slices: %w", err)
	}
	return nil
}

// writeTLS writes them, for root alone.
func (p *Part) writeTLS(key string, t *vnet.SwitchTLS) error {
	if t == nil {
		return nil
	}
	return errors.Join(p.write(key, keyFile, []byte(t.Key)), p.write(key, certFile, []byte(t.Certificate)), p.write(key, caFile, []byte(t.CA)))
}

// runsAs says whether the process was started with what a switch is given now.
func (s process) runsAs(other process) bool {
	if s.OpenFlow == nil || other.OpenFlow == nil {
		return s.OpenFlow == other.OpenFlow
	}
	a, b := s.OpenFlow.TLS, other.OpenFlow.TLS
	if s.OpenFlow.InBand != nil && !reflect.DeepEqual(s.OpenFlow.Slices, other.OpenFlow.Slices) {
		return false // what is control is known from the start
	}
	return slices.Equal(s.arguments(), other.arguments()) && (a == b || a != nil && b != nil && *a == *b)
}

// limit bounds processor time and memory.
func (p *Part) limit(s plan.Switch) error {
	g := p.group(s.Key())
	if err := g.Make(); err != nil {
		return err
	}
	return errors.Join(g.SetCPU(int64(s.OpenFlow.CPU)), g.SetMemory(int64(s.OpenFlow.Memory)))
}

// limited says whether the limits are as planned.
func (p *Part) limited(s plan.Switch) bool {
	g := p.group(s.Key())
	return g.CPU() == int64(s.OpenFlow.CPU) && g.Memory() == int64(s.OpenFlow.Memory)
}

// start starts the process in the namespace of its ControlNode, and waits until it
// answers.
func (p *Part) start(ctx context.Context, s plan.Switch) error {
	key := s.Key()
	if err := os.MkdirAll(p.dir(key), 0o700); err != nil {
		return err
	}
	for _, name := range []string{"ports", "socket"} {
		if err := os.Remove(p.file(key, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if err := os.Symlink(p.host.Path(key), p.file(key, "ports")); err != nil {
		return err
	}
	if err := p.writeTLS(key, s.OpenFlow.TLS); err != nil {
		return err
	}
	if err := p.writeSlices(s); err != nil {
		return err
	}
	return p.helper(key).StartIn(ctx, kernel.Launch{
		Dir: p.dir(key), Namespace: p.host.Path(s.ControlNamespace()), Argv: append([]string{kernel.Self}, process{s}.arguments()...),
	})
}

// helper is a switch's process. It answers questions about the switch between two
// rounds of the thread that carries frames.
func (p *Part) helper(key string) kernel.Helper {
	return kernel.Helper{
		Name: "its process", Group: p.group(key), Log: p.file(key, "log"), Socket: p.file(key, "socket"),
		Ask: func(ctx context.Context) error {
			c, done, err := p.ask(ctx, key)
			if err != nil {
				return err
			}
			defer done()
			_, err = c.Ask(&of13.Plain{Kind: of13.TypeFeaturesRequest})
			return err
		},
	}
}

// ask connects to a switch's process, which has until ctx ends to answer; done ends that.
func (p *Part) ask(ctx context.Context, key string) (c *channel.Client, done func(), err error) {
	// A path of a socket has at most 107 bytes, which that of a directory may exceed.
	dir, err := os.Open(p.dir(key))
	if err != nil {
		return nil, nil, err
	}
	defer dir.Close()
	conn, err := net.Dial("unix", fmt.Sprintf("/proc/self/fd/%d/socket", dir.Fd()))
	if err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(0, 1)) })
	done = func() { stop(); conn.Close() }
	if c, err = channel.NewClient(conn); err != nil {
		done()
		return nil, nil, err
	}
	return c, done, nil
}

// runsAs says whether a switch's process runs, as it is to.
func (p *Part) runsAs(s plan.Switch) bool {
	return p.running(s.Key()) && p.written(s.Key()).runsAs(process{s})
}

// running says whether a switch's process lives in the namespaces that are there now.
func (p *Part) running(key string) bool {
	s := p.written(key).Switch
	pids, err := p.group(key).Processes()
	if err != nil || len(pids) != 1 {
		return false
	}
	within := make(map[uint64]bool)
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/ns/net", pids[0]))
	for _, t := range threads {
		within[inode(t)] = true
	}
	ports, control := inode(p.host.Path(key)), inode(p.host.Path(s.ControlNamespace()))
	return ports != 0 && control != 0 && within[ports] && within[control]
}

// inode is the number by which a namespace is known; 0: it is not there.
func inode(path string) uint64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Sys().(*syscall.Stat_t).Ino
}
