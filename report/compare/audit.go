package compare

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/report"
)

// auditEvent holds the fields that are read of an event of audit.k8s.io/v1. Every level of the
// log records the denial; only level Request and above record the object's metadata.
type auditEvent struct {
	Kind      string    `json:"kind"`
	Stage     string    `json:"stage"`
	Verb      string    `json:"verb"`
	At        time.Time `json:"stageTimestamp"`
	ObjectRef struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
		UID         string `json:"uid"`
		APIGroup    string `json:"apiGroup"`
		APIVersion  string `json:"apiVersion"`
	} `json:"objectRef"`
	Response struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"responseStatus"`
	Request     object            `json:"requestObject"`
	Answer      object            `json:"responseObject"`
	Annotations map[string]string `json:"annotations"`
}

// Audit adds an audit log (JSON lines, audit.k8s.io/v1): requests that a webhook of another
// engine denied or failed to answer, and admitted requests for pods and their controllers. An
// unreadable line is counted. An error means that the reader failed.
func (c *Collector) Audit(from io.Reader) error {
	return lines(from, maxLine, func(line []byte, long bool) {
		var e auditEvent
		if long || json.Unmarshal(line, &e) != nil || e.Kind != "Event" {
			c.unreadable++
			return
		}
		c.audited(&e)
	})
}

// lines calls do with each line that is not empty. Lines that exceed the bound are skipped.
func lines(from io.Reader, most int, do func(line []byte, long bool)) error {
	reader := bufio.NewReaderSize(from, 64<<10)
	var line []byte
	long := false
	for {
		part, err := reader.ReadSlice('\n')
		long = long || len(line)+len(part) > most
		if !long {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if text := strings.TrimSpace(string(line)); long || text != "" {
			do([]byte(text), long)
		}
		line, long = line[:0], false
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read line by line: %w", err)
		}
	}
}

func (c *Collector) audited(e *auditEvent) {
	if e.Stage != "ResponseComplete" || e.Verb != "create" && e.Verb != "update" && e.Verb != "patch" {
		return
	}
	if e.ObjectRef.Subresource != "" && e.ObjectRef.Subresource != "ephemeralcontainers" {
		return
	}
	of := e.resource()
	if e.Response.Code >= 400 {
		c.denial(e.Response.Message, of, e.At, InAuditLog)
		return
	}
	if _, is := workloads()[e.ObjectRef.Resource]; !is || e.Response.Code < 200 || e.Response.Code >= 300 {
		return
	}
	c.take(engineVerdict{engine: APIServer, object: of, verdict: Admit, message: "the request came through", at: e.At, where: InAuditLog})
	for key, webhook := range e.Annotations {
		if !strings.HasPrefix(key, "failed-open.") {
			continue
		}
		if engine, known := engineOf(webhook); known && engine != Quaymaster {
			c.take(engineVerdict{engine: engine, object: of, verdict: Error, message: "the webhook " + webhook + " gave no answer, and its failure policy admits",
				at: e.At, where: InAuditLog})
		}
	}
}

// resource returns the object, as far as the level of the log records it.
func (e *auditEvent) resource() report.Resource {
	ref := &e.ObjectRef
	r := report.Resource{Kind: workloads()[ref.Resource], Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID, APIVersion: ref.APIVersion}
	if ref.APIGroup != "" {
		r.APIVersion = ref.APIGroup + "/" + ref.APIVersion
	}
	if r.Kind == "" {
		r.Kind = ref.Resource
	}
	whole := e.Request
	if e.Answer.Kind != "" && e.Answer.Kind != "Status" {
		whole = e.Answer
	}
	if whole.Metadata.Name+whole.Metadata.GenerateName == "" {
		return r
	}
	told := whole.resource()
	r.Owner = told.Owner
	if told.Name != "" {
		r.Name = told.Name
	}
	if told.UID != "" {
		r.UID = told.UID
	}
	if told.Kind != "" {
		r.Kind = told.Kind
	}
	return r
}

// workloads maps the resources of pods and their controllers to kinds.
func workloads() map[string]string {
	return map[string]string{
		"pods": "Pod", "replicasets": "ReplicaSet", "deployments": "Deployment", "statefulsets": "StatefulSet", "daemonsets": "DaemonSet",
		"jobs": "Job", "cronjobs": "CronJob", "replicationcontrollers": "ReplicationController",
	}
}
