package bed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"sublet/datapath/bridge"
	"sublet/plan"
	"sublet/vnet"
)

func (s *Switch) bridge() error {
	lines := []string{"sysctl -qw net.bridge.bridge-nf-call-iptables=0", "ip link add br0 type bridge mcast_snooping 0", "ip link set br0 up"}
	for _, port := range s.ports() {
		lines = append(lines, "ip link set "+port+" master br0")
	}
	return s.bed.in(s.Key, lines...)
}

var lease = vnet.LeaseID{Tenant: "bench", Network: "of"}

func learning() plan.Switch {
	return plan.Switch{Lease: lease, Switch: "s", Type: vnet.SwitchKernel, Ageing: vnet.DefaultAgeing}
}

// addLearning makes the learning switch's namespace.
func (b *Bed) addLearning(ctx context.Context) error {
	part := bridge.New(b.host)
	b.later(func() {
		if err := part.Do(context.WithoutCancel(ctx), plan.Step{Op: plan.Delete, Item: learning()}); err != nil {
			fmt.Fprintln(os.Stderr, "clean up:", err)
		}
		part.Close()
	})
	return part.Do(ctx, plan.Step{Op: plan.Add, Item: learning()})
}

func (s *Switch) joinLearning(ctx context.Context) error {
	part := bridge.New(s.bed.host)
	defer part.Close()
	for _, port := range s.ports() {
		err := part.Do(ctx, plan.Step{Op: plan.Add, Item: plan.SwitchPort{
			Lease: lease, Switch: "s", Type: vnet.SwitchKernel, Interface: port,
			LearningPort: plan.LearningPort{MACs: 16, Broadcast: 1000, Unknown: 1000},
		}})
		if err != nil {
			return err
		}
	}
	return nil
}

// datapath is the word for `sublet openflow run`.
func (k Kind) datapath() string {
	if k == Kernel {
		return "kernel"
	}
	return "process"
}

// words are for `sublet openflow run --ports`.
func (s *Switch) words() string {
	list := s.ports()
	if s.Kind == Sockets {
		for i := range list {
			list[i] = "xdp:" + list[i]
		}
	}
	return strings.Join(list, ",")
}

// startOurs starts the product, which listens for its controller.
func (s *Switch) startOurs(ctx context.Context) error {
	pid, err := s.daemon("taskset", "-c", "0", s.bed.Exe, "openflow", "run", "--quiet", "--controller", "ptcp:127.0.0.1:6654", "--dpid", "1",
		"--ports", s.words(), "--datapath", s.Kind.datapath(), "--entries", "300000", "--packet-ins", "0", "--meter-hold", s.bed.Hold.String())
	if err != nil {
		return err
	}
	return s.connect(ctx, pid)
}

// daemon starts a program in the switch's namespace.
func (s *Switch) daemon(argv ...string) (pid int, err error) {
	cmd := exec.Command("nsenter", append([]string{"--net=" + s.bed.host.Path(s.Key)}, argv...)...)
	if err := StartDaemon(cmd, s.dir(), argv[len(argv)-1]); err != nil {
		return 0, err
	}
	s.bed.later(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd.Process.Pid, nil
}

// StartDaemon starts a program whose files are in dir, with a log by the base of a name.
func StartDaemon(cmd *exec.Cmd, dir, name string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	cmd.Env = append(os.Environ(), "OVS_RUNDIR="+dir, "OVS_LOGDIR="+dir, "OVS_DBDIR="+dir)
	log, err := os.Create(filepath.Join(dir, filepath.Base(name)+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	return cmd.Start()
}

func (s *Switch) dir() string { return filepath.Join(s.bed.dir, s.Key) }

// startTheirs starts Open vSwitch with its userspace datapath.
func (s *Switch) startTheirs(ctx context.Context) error {
	do := func(lines ...string) error { return s.bed.in(s.Key, lines...) }
	ctl, pid, err := StartOVS(ctx, s.dir(), s.daemon, do)
	if err != nil {
		return err
	}
	kind := ""
	if s.Kind == AFXDP {
		kind = " type=afxdp"
	}
	line := ctl + "add-br br0 -- set bridge br0 datapath_type=netdev protocols=OpenFlow13 fail_mode=secure -- set-controller br0 ptcp:6654:127.0.0.1"
	for i, port := range s.ports() {
		line += fmt.Sprintf(" -- add-port br0 %s -- set interface %s ofport_request=%d%s", port, port, i+1, kind)
	}
	return errors.Join(do(line), s.connect(ctx, pid))
}

// StartOVS starts Open vSwitch on processor 0, with files in dir: daemon starts a program
// that goes on, do runs command lines, both in the namespace it shall be in. ctl begins
// a command line that configures it, pid is the switch.
func StartOVS(ctx context.Context, dir string, daemon func(argv ...string) (int, error), do func(lines ...string) error) (ctl string, pid int, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", 0, err
	}
	db, sock := filepath.Join(dir, "conf.db"), filepath.Join(dir, "db.sock")
	if out, err := exec.Command("ovsdb-tool", "create", db, "/usr/share/openvswitch/vswitch.ovsschema").CombinedOutput(); err != nil {
		return "", 0, fmt.Errorf("ovsdb-tool: %w: %s", err, out)
	}
	if _, err := daemon("ovsdb-server", db, "--remote=punix:"+sock, "--unixctl="+filepath.Join(dir, "db.ctl"), "--pidfile="+filepath.Join(dir, "db.pid")); err != nil {
		return "", 0, err
	}
	if err := appears(ctx, sock); err != nil {
		return "", 0, err
	}
	ctl = "ovs-vsctl --timeout=20 --db=unix:" + sock + " "
	if err := do(ctl+"--no-wait init", ctl+"--no-wait set Open_vSwitch . other_config:pmd-cpu-mask=1"); err != nil {
		return "", 0, err
	}
	pid, err = daemon("taskset", "-c", "0", "ovs-vswitchd", "unix:"+sock, "--unixctl="+filepath.Join(dir, "vs.ctl"), "--pidfile="+filepath.Join(dir, "vs.pid"))
	return ctl, pid, err
}

func appears(ctx context.Context, file string) error {
	for range 200 {
		if _, err := os.Stat(file); err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("%s does not appear", file)
}
