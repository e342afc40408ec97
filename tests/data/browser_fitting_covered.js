() => {
  const box = (part) => part.getBoundingClientRect(), found = [];
  for (const word of document.querySelectorAll(".kc [data-id^='session:'] .label"))
    for (const count of document.querySelectorAll(".kc [data-id^='count:'] .body")) {
      const [one, other] = [box(word), box(count)];
      const beside = one.right < other.left || other.right < one.left;
      const apart = beside || one.bottom < other.top || other.bottom < one.top;
      if (word.textContent && !apart) found.push(`${word.textContent} on ${count.parentElement.dataset.id}`);
    }
  return found;
}
