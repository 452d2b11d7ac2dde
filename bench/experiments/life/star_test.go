package main

import (
	"testing"

	"sublet/vnet/file"
)

// As many nodes as are asked for hang at switches that can carry them.
func TestStarIsARequest(t *testing.T) {
	for _, count := range []int{1, 100, 500} {
		r, err := file.ParseRequest("star.yaml", []byte(star(count, imageFile)))
		if err != nil || len(r.Nodes) != count || len(r.Links) != count+switches(count)-1 {
			t.Errorf("%d: %d nodes, %d links, %v", count, len(r.Nodes), len(r.Links), err)
		}
	}
}
