// Stands in for the notebook's kernel where a film was recorded: what that would be asked has been answered already.
export function recorded(film, index = film.index ?? 0) {
  const state = { film, index, playing: false, speed: 1, loop: false, selected: "", theme: "auto" }, listeners = {};
  return {
    get: (name) => state[name], save_changes() {}, off() {},
    send({ frame, ...asked }) {
      const why = asked.side === undefined ? film.whys[frame] : film.whys[frame][asked.side];
      const message = { ...asked, frame, why: { ...why, sources: why.sources.map((i) => film.sources[i]) } };
      (listeners["msg:custom"] ?? []).forEach((act) => act(message));
    },
    on: (event, act) => (listeners[event] ??= []).push(act),
    set: (name, value) => {
      if (state[name] === value) return;
      state[name] = value;
      (listeners["change:" + name] ?? []).forEach((act) => act());
    },
  };
}
