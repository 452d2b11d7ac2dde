package main

import (
	"testing"

	"sublet/vnet/file"
)

func TestShapesAreAsLargeAsTheySay(t *testing.T) {
	for _, s := range shapes {
		req, err := file.ParseRequest(s.name, []byte(s.build("large", many, s.two, ", rate: 1Mbit")))
		if err != nil {
			t.Fatal(err)
		}
		if len(req.Nodes) != many || len(req.Links) != many {
			t.Errorf("%s: %d nodes, %d links", s.name, len(req.Nodes), len(req.Links))
		}
	}
	if _, err := file.ParseSubstrate("cluster", []byte(cluster())); err != nil {
		t.Error(err)
	}
}
