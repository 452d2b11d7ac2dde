package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"sublet/bench/harness"
)

// switchd is an Open vSwitch of a namespace's own.
type switchd struct {
	dir     string
	daemons []*exec.Cmd
}

// startOpenVSwitch starts one in a namespace, joins p0 to p3 by a bridge with
// the userspace datapath, and pins its forwarding to processor 0.
func startOpenVSwitch(ns string) (*switchd, error) {
	dir, err := os.MkdirTemp("/run", "dpovs")
	s := &switchd{dir: dir}
	if err != nil {
		return s, err
	}
	db, sock := filepath.Join(dir, "conf.db"), filepath.Join(dir, "db.sock")
	if err := harness.Commands("ovsdb-tool create " + db + " /usr/share/openvswitch/vswitch.ovsschema"); err != nil {
		return s, err
	}
	if err := s.daemon("ip", "netns", "exec", ns, "ovsdb-server", db, "--remote=punix:"+sock, "--unixctl="+filepath.Join(dir, "db.ctl"), "--pidfile="+filepath.Join(dir, "db.pid")); err != nil {
		return s, err
	}
	ctl := "ip netns exec " + ns + " ovs-vsctl --timeout=20 --db=unix:" + sock + " "
	if err := s.await(sock); err != nil {
		return s, err
	}
	if err := harness.Commands(ctl+"--no-wait init", ctl+"--no-wait set Open_vSwitch . other_config:pmd-cpu-mask=1"); err != nil {
		return s, err
	}
	if err := s.daemon("ip", "netns", "exec", ns, "taskset", "-c", "0", "ovs-vswitchd", "unix:"+sock, "--unixctl="+filepath.Join(dir, "vs.ctl"), "--pidfile="+filepath.Join(dir, "vs.pid")); err != nil {
		return s, err
	}
	add := "--may-exist add-br br0 -- set bridge br0 datapath_type=netdev"
	for i := range 4 {
		add += fmt.Sprintf(" -- --may-exist add-port br0 p%d", i)
	}
	return s, harness.Commands(ctl + add)
}

func (s *switchd) daemon(argv ...string) error {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "OVS_RUNDIR="+s.dir, "OVS_LOGDIR="+s.dir, "OVS_DBDIR="+s.dir)
	log, err := os.Create(filepath.Join(s.dir, fmt.Sprintf("daemon%d.log", len(s.daemons))))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	s.daemons = append(s.daemons, cmd)
	return nil
}

func (s *switchd) await(file string) error {
	for range 100 {
		if _, err := os.Stat(file); err == nil {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("%s does not appear", file)
}

// processes are the daemons' numbers.
func (s *switchd) processes() []int {
	var all []int
	for _, cmd := range s.daemons {
		all = append(all, cmd.Process.Pid)
	}
	return all
}

// stop ends the daemons that were started and removes their files.
func (s *switchd) stop() error {
	for _, cmd := range s.daemons {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	return errors.Join(os.RemoveAll(s.dir))
}
