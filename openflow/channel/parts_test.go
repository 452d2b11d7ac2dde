package channel

import (
	"testing"

	"sublet/openflow/of13"
)

func part(more bool, tables ...uint8) *of13.MultipartRequest {
	m := &of13.MultipartRequest{Kind: of13.MultipartTableFeatures}
	if more {
		m.Flags = of13.MultipartMore
	}
	for _, t := range tables {
		m.TableFeatures = append(m.TableFeatures, of13.TableFeatures{Table: t})
	}
	return m
}

// Parts of one request come together, whatever was begun before.
func TestRequestsOfSeveralParts(t *testing.T) {
	c := newConn(nil, NewHub(func() {}))
	for i, m := range []*of13.MultipartRequest{part(true, 9), part(true, 0, 1), part(true, 2)} {
		if whole, err := c.gather(uint32(min(i, 1)), m); whole || err != nil {
			t.Fatalf("part %d: %v, %v", i, whole, err)
		}
	}
	last := part(false, 3)
	if whole, err := c.gather(1, last); !whole || err != nil || len(last.TableFeatures) != 4 || last.TableFeatures[2].Table != 2 {
		t.Errorf("%v, %v: %+v", whole, err, last.TableFeatures)
	}
	alone := part(false, 5)
	if whole, err := c.gather(1, alone); !whole || err != nil || len(alone.TableFeatures) != 1 {
		t.Errorf("%v, %v: %+v", whole, err, alone.TableFeatures)
	}
}

func TestRequestsOfTooManyParts(t *testing.T) {
	c := newConn(nil, NewHub(func() {}))
	var err error
	for range 3 {
		_, err = c.gather(1, part(true, make([]uint8, 100)...))
	}
	if err != error(of13.BadRequestMultipartOverflow) {
		t.Error(err)
	}
	if _, err := c.gather(2, &of13.MultipartRequest{Kind: of13.MultipartFlow, Flags: of13.MultipartMore}); err != error(of13.BadRequestMultipartOverflow) {
		t.Error(err)
	}
}
