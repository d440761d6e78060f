package admin

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"leasehold/internal/fault"
)

func (a *API) listNodes(w http.ResponseWriter, r *http.Request) error {
	if err := queryOf(r).err(); err != nil {
		return err
	}
	nodes, err := a.o.Store.Nodes(r.Context())
	if err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	return a.answer(w, http.StatusOK, Page[Node]{Items: append([]Node{}, nodes...)})
}

// drainNode has a node give up what it holds, and hold nothing until it is resumed.
// With nobody else to take it over, force says that it is meant all the same.
func (a *API) drainNode(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r, "force")
	force := q.oneOf("force", "true", "false") == "true"
	if err := q.err(); err != nil {
		return err
	}
	return a.setDrained(w, r, true, force)
}

// resumeNode takes that back.
func (a *API) resumeNode(w http.ResponseWriter, r *http.Request) error {
	if err := queryOf(r).err(); err != nil {
		return err
	}
	return a.setDrained(w, r, false, true)
}

func (a *API) setDrained(w http.ResponseWriter, r *http.Request, drained, force bool) error {
	n, others, err := a.node(r.Context(), r.PathValue("name"))
	if err != nil {
		return err
	}
	if !force && !n.Drained && others == 0 {
		return fault.Errorf(fault.Conflict, "%s is the only node that takes installations: all of them would fall silent until it is resumed; leasehold nodes drain --force does that", n.called())
	}
	if err := a.o.Store.DrainNode(r.Context(), n.Instance, drained); err != nil {
		return err //nolint:wrapcheck // it says what was being done
	}
	if a.o.Process != nil {
		a.o.Process.Trigger()
	}
	n.Drained = drained
	n.Draining = n.Draining || drained
	return a.answer(w, http.StatusOK, n)
}

// node finds a node by its name or its instance id, and counts the others that take
// installations. One without a session is known by its instance id alone: the store
// says whether it was drained.
func (a *API) node(ctx context.Context, name string) (found Node, others int, err error) {
	nodes, err := a.o.Store.Nodes(ctx)
	if err != nil {
		return found, 0, fmt.Errorf("list nodes: %w", err)
	}
	var same []string
	for _, n := range nodes {
		if n.Name == name || n.Instance == name {
			found, same = n, append(same, n.Instance)
		}
	}
	switch {
	case len(same) > 1:
		return found, 0, fault.Errorf(fault.Conflict, "%d nodes are called %s; say which by its instance: %s", len(same), name, strings.Join(same, ", "))
	case len(same) == 0:
		return Node{Instance: name}, 1, nil
	}
	for _, n := range nodes {
		if n.Instance != found.Instance && !n.Draining && n.Weight > 0 {
			others++
		}
	}
	return found, others, nil
}

// called is what people call a node.
func (n Node) called() string {
	if n.Name != "" {
		return n.Name
	}
	return n.Instance
}
