// The site's search works in a worker, and a browser starts none for a page that was opened as a file. There a hidden
// frame does the same: what the page posts is told to it, and what it posts is told to the page.
window.IFrameWorker = class extends EventTarget {
  constructor(url) {
    super();
    this.frame = document.createElement("iframe");
    this.frame.hidden = true;
    document.body.append(this.frame);
    const inside = this.frame.contentWindow;
    inside.postMessage = (data) => {
      const told = new MessageEvent("message", { data });
      this.dispatchEvent(told);
      if (this.onmessage) this.onmessage(told);
    };
    this.ready = new Promise((done) => {
      const script = inside.document.createElement("script");
      script.onload = done;
      script.src = url;
      inside.document.body.append(script);
    });
  }

  postMessage(data) {
    const inside = this.frame.contentWindow;
    this.ready.then(() => inside.dispatchEvent(new inside.MessageEvent("message", { data: structuredClone(data) })));
  }

  terminate() {
    this.frame.remove();
  }
};
if (location.protocol === "file:") window.Worker = window.IFrameWorker;
