package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"sublet/bench/harness"
	"sublet/lease/api"
	"sublet/vnet/file"
)

// manyHosts is the size of the substrate that admissions are decided on.
const manyHosts = 100

// admission asks a server for networks of 50 nodes on a substrate of 100
// hosts. There are no agents: deciding, storing and answering is measured.
// Every network stays, so the substrate fills up.
func admission(ctx context.Context, exe string) (err error) {
	dir, err := os.MkdirTemp("/run", "slb")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	text := filepath.Join(dir, "substrate.yaml")
	if err := os.WriteFile(text, []byte(cluster()), 0o600); err != nil {
		return err
	}
	run := filepath.Join(dir, "run")
	serve := exec.Command(exe, "--run", run, "serve", "--data", filepath.Join(dir, "data"), "--substrate", text)
	if err := serve.Start(); err != nil {
		return err
	}
	defer func() {
		serve.Process.Signal(os.Interrupt)
		serve.Wait()
	}()
	client := api.NewClient(filepath.Join(run, "api.sock"))
	defer client.Close()
	if err := await(ctx, client); err != nil {
		return err
	}
	times, err := ask(ctx, client)
	if err != nil {
		return err
	}
	t := harness.Table{Head: []string{"admission of 50 nodes and 50 links on 100 hosts, by the API", "ms"}}
	t.Add(fmt.Sprintf("%d admissions one after another, all stay", *asks), times.Format("%.1f"))
	t.Print(os.Stdout)
	fmt.Print("Median (smallest to largest): request sent, decided, written to the store (synced to disk), answered.\n\n")
	return nil
}

// ask admits network after network and times each.
func ask(ctx context.Context, client *api.Client) (times harness.Samples, err error) {
	for i := range *asks {
		req, err := file.ParseRequest("request", []byte(star(fmt.Sprint("n", i), starSize, false, ", min: 1Mbit, max: 10Mbit")))
		if err != nil {
			return nil, err
		}
		began := time.Now()
		if _, err := client.Admit(ctx, req, false); err != nil {
			return nil, err
		}
		times = append(times, time.Since(began).Seconds()*1000)
	}
	return times, nil
}

// await waits for the server to answer.
func await(ctx context.Context, client *api.Client) error {
	deadline := time.Now().Add(30 * time.Second)
	for {
		_, err := client.Hosts(ctx)
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.Join(errors.New("the server does not answer"), err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// cluster is a substrate of hosts around one switch.
func cluster() string {
	var b strings.Builder
	b.WriteString("switches: [s1]\nhosts:\n")
	for i := range manyHosts {
		fmt.Fprintf(&b, "  - {name: h%d, cpu: 64, memory: 64GiB}\n", i+1)
	}
	b.WriteString("links:\n")
	for i := range manyHosts {
		fmt.Fprintf(&b, "  - {ends: [h%d, s1], capacity: 10Gbit, ports: {h%d: {interface: p0, address: 192.0.2.%d}}}\n", i+1, i+1, i+1)
	}
	return b.String()
}
