// Light, dark, or as the system has it; kept where the browser lets us.
const KEY = 'weir-theme';

export function startTheme() {
  const select = document.getElementById('theme');
  const root = document.documentElement;
  const take = (theme) => {
    if (theme) root.dataset.theme = theme;
    else delete root.dataset.theme;
    dispatchEvent(new Event('weir-theme'));
  };
  try {
    select.value = localStorage.getItem(KEY) ?? '';
  } catch { /* not allowed here */ }
  if (select.selectedIndex < 0) select.value = '';
  take(select.value);
  select.addEventListener('change', () => {
    take(select.value);
    try {
      localStorage.setItem(KEY, select.value);
    } catch { /* not allowed here */ }
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => dispatchEvent(new Event('weir-theme')));
}

// A colour of the style sheet, for what is drawn.
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
