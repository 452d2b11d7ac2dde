package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"sublet/bench/harness"
)

// openVSwitch adds paths through one Open vSwitch with the userspace datapath, whose
// forwarding is pinned to processor 0: a bridge for each, with a table for each function.
// Where it is not installed they are left out.
func (b *builder) openVSwitch(numbers ...int) error {
	if _, err := exec.LookPath("ovs-vswitchd"); err != nil {
		fmt.Println("Open vSwitch is not installed: left out")
		return nil
	}
	const space = "ovs"
	if err := b.space(space); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("/run", "slt-chain-ovs")
	if err != nil {
		return err
	}
	b.undo = append(b.undo, func() { os.RemoveAll(dir) })
	db, sock := filepath.Join(dir, "conf.db"), filepath.Join(dir, "db.sock")
	if err := harness.Commands("ovsdb-tool create " + db + " /usr/share/openvswitch/vswitch.ovsschema"); err != nil {
		return err
	}
	var processes []int
	daemon := func(argv ...string) error {
		cmd := exec.Command("nsenter", append([]string{"--net=" + b.host.Path(space)}, argv...)...)
		cmd.Env = append(os.Environ(), "OVS_RUNDIR="+dir, "OVS_LOGDIR="+dir, "OVS_DBDIR="+dir)
		if err := cmd.Start(); err != nil {
			return err
		}
		processes = append(processes, cmd.Process.Pid)
		b.undo = append(b.undo, func() { cmd.Process.Kill(); cmd.Wait() })
		return nil
	}
	if err := daemon("ovsdb-server", db, "--remote=punix:"+sock, "--unixctl="+filepath.Join(dir, "db.ctl"), "--pidfile="+filepath.Join(dir, "db.pid")); err != nil {
		return err
	}
	if err := await(sock); err != nil {
		return err
	}
	ctl := "ovs-vsctl --timeout=20 --db=unix:" + sock + " "
	if err := harness.Commands(ctl+"--no-wait init", ctl+"--no-wait set Open_vSwitch . other_config:pmd-cpu-mask=1"); err != nil {
		return err
	}
	if err := daemon("taskset", "-c", "0", "ovs-vswitchd", "unix:"+sock, "--disable-system", "--unixctl="+filepath.Join(dir, "vs.ctl"), "--pidfile="+filepath.Join(dir, "vs.pid")); err != nil {
		return err
	}
	for _, n := range numbers {
		if err := b.tables(space, dir, ctl, n); err != nil {
			return err
		}
		b.subjects[len(b.subjects)-1].from.Processes = processes
	}
	return nil
}

func await(file string) error {
	for range 200 {
		if _, err := os.Stat(file); err == nil {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("%s does not appear", file)
}

// tables adds a bridge with n tables of which each drops what a firewall of chains does.
func (b *builder) tables(space, dir, ctl string, n int) error {
	i := len(b.subjects)
	a, z, bridge := fmt.Sprint("a", i), fmt.Sprint("z", i), fmt.Sprint("br", i)
	flows := ""
	for k := range n {
		next := fmt.Sprint("goto_table:", k+1)
		if k == n-1 {
			next = "output:2"
		}
		flows += fmt.Sprintf("table=%d,priority=10,tcp,tp_dst=23,actions=drop\ntable=%d,priority=1,ip,actions=%s\n", k, k, next)
	}
	file := filepath.Join(dir, bridge)
	for _, err := range []error{
		b.node(a, space, "p"+a, "02:00:00:00:00:0a"), b.node(z, space, "p"+z, "02:00:00:00:00:0b"),
		b.in(a, "ip addr add 10.0.0.1/24 dev eth0", "ip neigh replace 10.0.0.2 lladdr 02:00:00:00:00:0b dev eth0"),
		b.in(z, "ip addr add 10.0.0.2/24 dev eth0", "ip neigh replace 10.0.0.1 lladdr 02:00:00:00:00:0a dev eth0"),
		os.WriteFile(file, []byte(flows), 0o600),
		harness.Commands(fmt.Sprintf("%[1]s--may-exist add-br %[2]s -- set bridge %[2]s datapath_type=netdev -- add-port %[2]s p%[3]s -- set interface p%[3]s ofport_request=1 -- add-port %[2]s p%[4]s -- set interface p%[4]s ofport_request=2", ctl, bridge, a, z)),
		harness.Commands("ovs-ofctl del-flows unix:"+filepath.Join(dir, bridge+".mgmt"), "ovs-ofctl add-flows unix:"+filepath.Join(dir, bridge+".mgmt")+" "+file),
	} {
		if err != nil {
			return err
		}
	}
	return b.add(fmt.Sprintf("Open vSwitch, userspace, %d tables", n), a, "10.0.0.1", z, "10.0.0.2")
}
