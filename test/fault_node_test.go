package test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"sublet/plan"
	"sublet/vnet"
)

// node names a node of a running network for flows.
type node struct {
	host string
	id   vnet.LeaseID
	name string
}

func (s *supervisor) namespaceOf(n node) string {
	return filepath.Join(s.run, "netns", n.host, fmt.Sprintf("%s.%s.%s", n.id.Tenant, n.id.Network, n.name))
}

// nodeCommand prepares a command in a node's network, started from outside:
// it goes on when the agent dies, unlike sessions.
func (s *supervisor) nodeCommand(host string, id vnet.LeaseID, node string, argv ...string) *exec.Cmd {
	file := filepath.Join(s.run, "netns", host, fmt.Sprintf("%s.%s.%s", id.Tenant, id.Network, node))
	return exec.Command("nsenter", append([]string{"--net=" + file, "--"}, argv...)...)
}

// inHost runs a command in a host's network namespace.
func (s *supervisor) inHost(host string, argv ...string) {
	s.t.Helper()
	s.in(s.hostNamespace(host), argv...)
}

// in runs a command in a network namespace and gives what it wrote.
func (l *lab) in(namespace string, argv ...string) string {
	l.t.Helper()
	out, err := exec.Command("nsenter", append([]string{"--net=" + namespace, "--"}, argv...)...).CombinedOutput()
	if err != nil {
		l.t.Fatalf("%s in %s: %v\n%s", strings.Join(argv, " "), namespace, err, out)
	}
	return string(out)
}

// addressOf finds a node's address in the plan of a host of its network.
func (s *supervisor) addressOf(host string, id vnet.LeaseID, node string) string {
	s.t.Helper()
	p, err := s.api.PlanNow(s.t.Context(), vnet.HostID(host))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, table := range plan.Of[plan.NameTable](p) {
		for _, n := range table.Names {
			if table.Lease == id && n.Name == node {
				return n.Address.String()
			}
		}
	}
	s.t.Fatalf("%s of %s has no address", node, id)
	return ""
}
