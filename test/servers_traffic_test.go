package test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"sublet/lease/api"
	"sublet/vnet"
)

// lineOfSix is the line of switches of Li's experiment on intents, each of which has two
// entries for a link that passes, one for each direction.
const lineOfSix = 6

func sixSwitches() string {
	var b strings.Builder
	b.WriteString("hosts: [{name: h1, cpu: 4000, memory: 64GiB}, {name: h2, cpu: 4000, memory: 64GiB}]\nswitches:\n")
	for n := 1; n <= lineOfSix; n++ {
		left, right := "h1-sw1", fmt.Sprintf("sw%d-sw%d", n, n+1)
		if n > 1 {
			left = fmt.Sprintf("sw%d-sw%d", n-1, n)
		}
		if n == lineOfSix {
			right = fmt.Sprintf("sw%d-h2", n)
		}
		fmt.Fprintf(&b, "  - {name: sw%d, openflow: {connect: \"tcp:127.0.0.1:%d\", datapath_id: \"a%d\"}, ports: {%s: 1, %s: 2}, entries: 6000, meters: 4096}\n", n, 6600+n, n, left, right)
	}
	b.WriteString("links:\n  - {ends: [h1, sw1], capacity: 100Gbit, ports: {h1: {interface: eth0, address: 192.0.2.1}}}\n")
	for n := 1; n < lineOfSix; n++ {
		fmt.Fprintf(&b, "  - {ends: [sw%d, sw%d], capacity: 100Gbit}\n", n, n+1)
	}
	fmt.Fprintf(&b, "  - {ends: [sw%d, h2], capacity: 100Gbit, ports: {h2: {interface: eth0, address: 192.0.2.2}}}\n", lineOfSix)
	return b.String()
}

// entriesOfALink are what a lease of one link has in the line of switches.
const entriesOfALink = 2 * lineOfSix

// BenchmarkMembers measures what servers say to each other: -benchtime 1x. It needs
// iptables, which counts the bytes. Hosts and switches are not there, so what is
// released stays in their plans: batches make plans longer.
func BenchmarkMembers(b *testing.B) {
	if !secluded(b) {
		return
	}
	if _, err := exec.LookPath("iptables"); err != nil {
		b.Skip("needs iptables")
	}
	for _, n := range []int{1, 3, 5} {
		c := newOwnControl(b, n, sixSwitches())
		leader := c.leader()
		fmt.Printf("servers=%d: the store's commit %s\n", n, c.commits(leader))
		c.singly(leader, n, "leader")
		if n > 1 {
			c.singly(c.members[(slices.Index(c.members, leader)+1)%n], n, "follower")
		}
		for _, batch := range []int{1, 10, 100} {
			took := c.intents(fmt.Sprintf("b%d", batch), batch)
			fmt.Printf("servers=%d: %d intents over %d switches: %.1f ms, %.0f entries/s\n", n, batch, lineOfSix, took.Seconds()*1e3, float64(batch*entriesOfALink)/took.Seconds())
		}
		if n == 3 {
			c.joins()
			c.byPrimary()
		}
	}
}

// singly measures one intent after another.
func (c *control) singly(by *member, n int, role string) {
	client := c.client(by.address)
	var up, all []float64
	for i := range 20 {
		began := time.Now()
		c.intent(client, fmt.Sprintf("%s%d", role, i))
		up = append(up, time.Since(began).Seconds()*1e3)
		if _, err := client.Release(c.t.Context(), intentID(fmt.Sprintf("%s%d", role, i))); err != nil {
			c.t.Fatal(err)
		}
		all = append(all, time.Since(began).Seconds()*1e3)
	}
	fmt.Printf("servers=%d: by the %s, an intent %s, with its release %s\n", n, role, spreadMs(up), spreadMs(all))
}

func spreadMs(list []float64) string {
	slices.Sort(list)
	return fmt.Sprintf("%.2f ms (%.2f to %.2f)", list[len(list)/2], list[0], list[len(list)-1])
}

// commits measures the store's commits by the leader's member.
func (c *control) commits(m *member) string {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"unix://" + filepath.Join(m.data, "etcd", "etcd.sock")}, DialTimeout: 5 * time.Second})
	if err != nil {
		c.t.Fatal(err)
	}
	defer client.Close()
	var took []float64
	for i := range 100 {
		began := time.Now()
		if _, err := client.Put(c.t.Context(), "/measured", strconv.Itoa(i)); err != nil {
			c.t.Fatal(err)
		}
		took = append(took, time.Since(began).Seconds()*1e3)
	}
	return spreadMs(took)
}

func intentID(name string) vnet.LeaseID {
	return vnet.LeaseID{Tenant: "bin", Network: vnet.VNetID(name)}
}

// intent is a link from the first switch to the last one, both ways.
func (c *control) intent(client *api.Client, name string) {
	r := vnet.Request{Tenant: "bin", Network: vnet.VNetID(name)}
	r.Nodes = []vnet.VirtualNode{{Name: "a", CPU: 10, Memory: vnet.MiB, Host: "h1"}, {Name: "b", CPU: 10, Memory: vnet.MiB, Host: "h2"}}
	least := vnet.Bandwidth{Min: 1e6, Max: 1e6}
	r.Links = []vnet.VirtualLink{{Name: "l", Ends: [2]string{"a", "b"}, Bandwidth: [2]vnet.Bandwidth{least, least}}}
	if _, err := client.Admit(c.t.Context(), r, false); err != nil {
		c.t.Fatalf("%s: %v", name, err)
	}
}

// intents asks for many at once, by as many callers as a server takes of one tenant
// without making one wait; it says how long the last one took to be in the store.
func (c *control) intents(name string, many int) time.Duration {
	client := c.client(c.addresses()...)
	next := make(chan int)
	var ends sync.WaitGroup
	began := time.Now()
	for range 4 {
		ends.Go(func() {
			for i := range next {
				c.intent(client, fmt.Sprintf("%s-%d", name, i))
			}
		})
	}
	for i := range many {
		next <- i
	}
	close(next)
	ends.Wait()
	return time.Since(began)
}

// count has the kernel count what a server sends to the others.
func (c *control) count(m *member) {
	for _, other := range c.members {
		if other != m {
			address, _, _ := net.SplitHostPort(other.address)
			c.ip("netns", "exec", m.ns, "iptables", "-A", "OUTPUT", "-d", address)
		}
	}
}

// sent are the bytes from one server to another, by their names.
func (c *control) sent() map[[2]string]int {
	of := map[string]string{}
	for _, m := range c.members {
		address, _, _ := net.SplitHostPort(m.address)
		of[address] = m.name
	}
	bytes := map[[2]string]int{}
	for _, m := range c.members {
		out, err := exec.Command("ip", "netns", "exec", m.ns, "iptables", "-nvxL", "OUTPUT").Output()
		if err != nil {
			c.t.Fatal(err)
		}
		for _, line := range strings.Split(string(out), "\n") {
			f := strings.Fields(line)
			if len(f) < 8 {
				continue
			}
			n, err := strconv.Atoi(f[1])
			if name := of[f[len(f)-1]]; name != "" && err == nil {
				bytes[[2]string{m.name, name}] += n
			}
		}
	}
	return bytes
}

// between says what servers sent each other since before, both ways, and in all.
func (c *control) between(before map[[2]string]int) (text string, sum int) {
	now := c.sent()
	for i, a := range c.members {
		for _, z := range c.members[i+1:] {
			there, back := [2]string{a.name, z.name}, [2]string{z.name, a.name}
			bytes := now[there] - before[there] + now[back] - before[back]
			text += fmt.Sprintf(" %s-%s %.1f kB", a.name, z.name, float64(bytes)/1e3)
			sum += bytes
		}
	}
	return text, sum
}

// byPrimary measures what each of three servers sends when one of them leads.
func (c *control) byPrimary() {
	for _, m := range c.members {
		c.count(m)
	}
	const idle = 5 * time.Second
	before := c.sent()
	time.Sleep(idle)
	text, sum := c.between(before)
	fmt.Printf("idle: %s, sum %.3f Mbit/s\n", text, float64(sum)*8/idle.Seconds()/1e6)
	const many = 20
	for i, m := range c.members {
		for range 30 {
			leader := c.leader()
			if leader == m {
				break
			}
			c.killed(leader)()
		}
		if leader := c.leader(); leader != m {
			c.t.Logf("%s did not get to lead", m.name)
			continue
		}
		name := fmt.Sprintf("p%d", i)
		before := c.sent()
		took := c.intents(name, many)
		text, sum := c.between(before)
		fmt.Printf("%s leads: %s, %.3f Mbit/s, a flow rule %.0f bytes, a lease %.0f bytes\n", m.name, text,
			float64(sum)*8/took.Seconds()/1e6, float64(sum)/many/entriesOfALink, float64(sum)/many)
	}
}

// joins measures what a further server takes to have a store of these leases.
func (c *control) joins() {
	m := c.namespace()
	if err := c.client(c.addresses()...).AddServer(c.t.Context(), api.Server{Name: m.name, Address: m.address, Member: m.store}, ""); err != nil {
		c.t.Fatal(err)
	}
	time.Sleep(6 * time.Second) // until members that were strange five seconds ago are taken in
	began := time.Now()
	c.members = append(c.members, m)
	for _, one := range c.members {
		c.count(one)
	}
	before := c.sent()
	c.start(m)
	took := time.Since(began)
	text, sum := c.between(before)
	fmt.Printf("a fourth server joins: %.0f ms, %s, sum %.1f kB, mean %.1f Mbit/s\n", took.Seconds()*1e3, text, float64(sum)/1e3, float64(sum)*8/took.Seconds()/1e6)
	if err := c.client(c.members[0].address).RemoveServer(context.WithoutCancel(c.t.Context()), m.name); err != nil {
		c.t.Fatal(err)
	}
	_ = m.cmd.Wait()
	c.members = c.members[:len(c.members)-1]
	for _, one := range c.members {
		c.ip("netns", "exec", one.ns, "iptables", "-F", "OUTPUT")
	}
	c.sizes()
}

// sizes says what a lease is in the store.
func (c *control) sizes() {
	l, err := c.client(c.addresses()...).Lease(c.t.Context(), intentID("b100-0"))
	if err != nil {
		c.t.Fatal(err)
	}
	text, err := json.Marshal(l)
	if err != nil {
		c.t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(c.leader().data, "etcd", "member", "snap", "db"))
	if err != nil {
		c.t.Fatal(err)
	}
	fmt.Printf("a lease as JSON %d bytes; the database %.1f MB\n", len(text), float64(info.Size())/1e6)
}
